import asyncio

import pytest

from app.evaluation.model import Progress
from app.findings.model import Subject
from app.pipeline.values import Claim, Lease
from app.storage.store import DatabaseStore
from tests.storage.making import (
    SOME_VERDICTS,
    WORKSPACE,
    claim,
    claim_all,
    conversation_ids,
    finish,
    save,
    sql,
    submit,
    verdict,
)

RAN_OUT = -1.0
"""A lease of less than no time: what a dead worker leaves behind, without waiting for it."""


async def progress(store: DatabaseStore, evaluation_id: str) -> tuple[str, Progress]:
    async with store.read() as reader:
        found = await reader.evaluation(WORKSPACE, evaluation_id)
    assert found is not None
    return found.status, found.progress


async def test_a_claim_starts_the_evaluation_and_is_counted(store: DatabaseStore) -> None:
    evaluation_id = await submit(store, 2)
    first, second = await conversation_ids(store, evaluation_id)
    held = await claim(store, first)
    assert held is not None
    assert (held.evaluation_id, held.workspace_id, held.index, held.attempt) == (evaluation_id, WORKSPACE, 0, 1)
    assert (held.done, held.tokens_spent, held.cost_spent_usd) == (frozenset(), 0, 0.0)
    assert 0 <= held.waited_seconds < 60
    assert await progress(store, evaluation_id) == ("in_progress", Progress(2, queued=1, in_progress=1))
    async with store.read() as reader:
        started = await reader.evaluation(WORKSPACE, evaluation_id)
    assert started is not None
    assert started.started_at is not None
    await claim(store, second)
    async with store.read() as reader:
        later = await reader.evaluation(WORKSPACE, evaluation_id)
    assert later is not None
    assert later.started_at == started.started_at
    assert later.revision > started.revision


async def test_of_twenty_claims_at_once_one_wins(store: DatabaseStore) -> None:
    [conversation_id] = await conversation_ids(store, await submit(store))
    claims = await asyncio.gather(*(claim(store, conversation_id) for _ in range(20)))
    assert sum(one is not None for one in claims) == 1


async def test_there_is_nothing_to_claim_where_nothing_is(store: DatabaseStore) -> None:
    assert await claim(store, "conv_none") is None
    assert await claim(store, "conv\0\ud800") is None


async def test_spent_tokens_and_costs_are_those_of_finished_conversations(store: DatabaseStore) -> None:
    evaluation_id = await submit(store, 2)
    first, second = await conversation_ids(store, evaluation_id)
    held = await claim(store, first)
    assert held is not None
    await save(store, held, SOME_VERDICTS)
    await finish(store, held)
    held = await claim(store, second)
    assert held is not None
    assert (held.tokens_spent, held.cost_spent_usd) == (39, 0.75)


async def test_what_is_put_back_at_once_is_rung_for_at_once(store: DatabaseStore) -> None:
    ids = await conversation_ids(store, await submit(store))
    for _ in range(2):
        async with store.begin() as tx:
            assert await tx.due(window=1, republish_after_seconds=60) == ids
        held = await claim(store, ids[0])
        assert held is not None
        async with store.begin() as tx:
            assert await tx.put_back(held.lease, delay_seconds=0, burn_attempt=False)


async def test_what_is_put_back_is_due_after_its_delay(store: DatabaseStore) -> None:
    evaluation_id = await submit(store)
    [held] = await claim_all(store, evaluation_id)
    async with store.begin() as tx:
        assert await tx.put_back(held.lease, delay_seconds=60, burn_attempt=True)
    assert await progress(store, evaluation_id) == ("in_progress", Progress(1, queued=1))
    assert await claim(store, held.lease.conversation_id) is None
    async with store.begin() as tx:
        assert await tx.due(window=10, republish_after_seconds=10) == []
        assert not await tx.put_back(held.lease, delay_seconds=0, burn_attempt=True)


@pytest.mark.parametrize(("burn", "attempt"), [(True, 2), (False, 1)])
async def test_an_attempt_is_burned_only_on_demand(store: DatabaseStore, burn: bool, attempt: int) -> None:
    [held] = await claim_all(store, await submit(store))
    async with store.begin() as tx:
        assert await tx.put_back(held.lease, delay_seconds=0, burn_attempt=burn)
    again = await claim(store, held.lease.conversation_id)
    assert again is not None
    assert again.attempt == attempt


async def test_a_lease_that_ran_out_is_taken_over_and_its_owner_fenced_out(store: DatabaseStore) -> None:
    evaluation_id = await submit(store)
    [zombie] = await claim_all(store, evaluation_id, RAN_OUT)
    await save(store, zombie, [verdict("relevance", subject=Subject("turn", turn=1))])
    owner = await claim(store, zombie.lease.conversation_id)
    assert owner is not None
    assert owner.attempt == 2
    assert owner.done == {("relevance", "turn:1", "1")}
    assert await progress(store, evaluation_id) == ("in_progress", Progress(1, in_progress=1))
    assert await claim(store, zombie.lease.conversation_id) is None
    await fenced_out(store, zombie)
    async with store.begin() as tx:
        assert await tx.extend(owner.lease, 60)
    assert await finish(store, owner) is not None
    assert await finish(store, owner) is None
    await fenced_out(store, owner)


async def fenced_out(store: DatabaseStore, held: Claim) -> None:
    """Assert that nothing can be written under a lease."""
    async with store.begin() as tx:
        assert not await tx.extend(held.lease, 60)
        assert not await tx.save_verdicts(held.lease, [verdict("late")])
        assert not await tx.put_back(held.lease, delay_seconds=0, burn_attempt=True)
        tally = await tx.conversation_tally(held.lease)
        assert tally is None
    assert await sql(store, "SELECT count(*) FROM verdicts WHERE dimension = 'late'") == [(0,)]


async def test_a_beat_keeps_others_away(store: DatabaseStore) -> None:
    [held] = await claim_all(store, await submit(store), RAN_OUT)
    async with store.begin() as tx:
        assert await tx.extend(held.lease, 60)
    assert await claim(store, held.lease.conversation_id) is None
    async with store.begin() as tx:
        assert await tx.expired(max_attempts=3, lease_seconds=60) == []
        assert not await tx.extend(Lease(held.lease.conversation_id, "guessed"), 60)


async def test_due_takes_turns_between_evaluations_and_keeps_to_its_window(store: DatabaseStore) -> None:
    first, second = await submit(store, 3), await submit(store, 3)
    a, b = await conversation_ids(store, first), await conversation_ids(store, second)
    expected = [one for pair in zip(a, b, strict=True) for one in sorted(pair)]
    async with store.begin() as tx:
        assert await tx.due(window=4, republish_after_seconds=60) == expected[:4]
        assert await tx.due(window=4, republish_after_seconds=60) == []
        assert await tx.due(window=5, republish_after_seconds=60) == expected[4:5]
    assert await claim(store, expected[0]) is not None
    async with store.begin() as tx:
        assert await tx.due(window=5, republish_after_seconds=60) == expected[5:]


async def test_what_the_queue_forgot_is_due_again(store: DatabaseStore) -> None:
    ids = await conversation_ids(store, await submit(store, 3))
    async with store.begin() as tx:
        assert await tx.due(window=3, republish_after_seconds=60) == ids
    async with store.begin() as tx:
        assert await tx.due(window=3, republish_after_seconds=RAN_OUT) == ids
        await tx.unpublish([*ids[1:], "conv_none"])
        await tx.unpublish([])
        assert await tx.due(window=3, republish_after_seconds=60) == ids[1:]


async def test_due_skips_what_is_claimed_or_ended(store: DatabaseStore) -> None:
    evaluation_id = await submit(store, 3)
    ids = await conversation_ids(store, evaluation_id)
    held = await claim(store, ids[0])
    assert held is not None
    await finish(store, held)
    await claim(store, ids[1])
    async with store.begin() as tx:
        assert await tx.due(window=10, republish_after_seconds=60) == ids[2:]


async def test_dispatchers_at_once_share_the_work(store: DatabaseStore) -> None:
    ids = await conversation_ids(store, await submit(store, 40))

    async def dispatch() -> list[str]:
        async with store.begin() as tx:
            return await tx.due(window=40, republish_after_seconds=60)

    shares = await asyncio.gather(*(dispatch() for _ in range(5)))
    assert sorted(one for share in shares for one in share) == ids


async def test_leases_that_ran_out_are_put_back_or_taken_over(store: DatabaseStore) -> None:
    evaluation_id = await submit(store, 3)
    tried, worn, alive = await claim_all(store, evaluation_id, RAN_OUT)
    async with store.begin() as tx:
        await tx.extend(alive.lease, 60)
    await sql(store, "UPDATE conversations SET attempt = 3 WHERE id = :id", id=worn.lease.conversation_id)
    await save(store, worn, [verdict("relevance")])
    async with store.begin() as tx:
        lost = await tx.expired(max_attempts=3, lease_seconds=60)
    [taken] = lost
    assert (taken.lease.conversation_id, taken.attempt) == (worn.lease.conversation_id, 3)
    assert (list(taken.done), taken.body) == ([("relevance", "conversation", "1")], b"body")
    assert taken.lease.token != worn.lease.token
    assert await progress(store, evaluation_id) == ("in_progress", Progress(3, queued=1, in_progress=2))
    await fenced_out(store, tried)
    await fenced_out(store, worn)
    async with store.begin() as tx:
        assert await tx.expired(max_attempts=3, lease_seconds=60) == []
        assert await tx.due(window=9, republish_after_seconds=60) == [tried.lease.conversation_id]
    again = await claim(store, tried.lease.conversation_id)
    assert again is not None
    assert again.attempt == 2


async def test_reapers_at_once_take_each_conversation_over_once(store: DatabaseStore) -> None:
    evaluations = [await submit(store, 4) for _ in range(4)]
    for evaluation_id in evaluations:
        await claim_all(store, evaluation_id, RAN_OUT)

    async def reap(max_attempts: int) -> list[Claim]:
        async with store.begin() as tx:
            return await tx.expired(max_attempts=max_attempts, lease_seconds=60, limit=5)

    lost = [one for share in await asyncio.gather(*(reap(1) for _ in range(6))) for one in share]
    assert len({one.lease.conversation_id for one in lost}) == len(lost) == 16


async def test_no_time_comes_from_this_machine(store: DatabaseStore) -> None:
    evaluation_id = await submit(store)
    [held] = await claim_all(store, evaluation_id, 30)
    [(inside,)] = await sql(
        store,
        "SELECT count(*) FROM conversations WHERE lease_until > strftime('%Y-%m-%d %H:%M:%f', 'now', '+20 seconds')"
        " AND lease_until < strftime('%Y-%m-%d %H:%M:%f', 'now', '+40 seconds')"
        if store._engine.dialect.name == "sqlite"
        else "SELECT count(*) FROM conversations"
        " WHERE lease_until BETWEEN now() + interval '20 s' AND now() + interval '30 s'",
    )
    assert inside == 1
    assert held.attempt == 1
