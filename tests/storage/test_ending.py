import asyncio
import random
from collections import Counter
from collections.abc import Awaitable

import pytest

from app.evaluation.model import Progress, Status
from app.pipeline.values import Claim, Closing, VerdictFilter
from app.storage.schema import metadata
from app.storage.store import DatabaseStore
from tests.storage.making import (
    EVERYTHING,
    OTHER_WORKSPACE,
    SOME_VERDICTS,
    WORKSPACE,
    claim,
    claim_all,
    conversation_ids,
    counts,
    finish,
    save,
    sql,
    submit,
)
from tests.storage.test_leasing import fenced_out
from tests.tallies import tally_of


async def cancel(store: DatabaseStore, evaluation_id: str, workspace_id: str = WORKSPACE) -> Status | None:
    async with store.begin() as tx:
        return await tx.cancel(workspace_id, evaluation_id)


async def delete(store: DatabaseStore, evaluation_id: str, workspace_id: str = WORKSPACE) -> bool:
    async with store.begin() as tx:
        return await tx.delete(workspace_id, evaluation_id)


async def test_the_last_of_many_finishes_at_once_closes_the_evaluation_once(store: DatabaseStore) -> None:
    evaluation_id = await submit(store, 50, webhook=True)
    claims = await claim_all(store, evaluation_id)
    for held in claims[::5]:
        await save(store, held, SOME_VERDICTS)
    again = [*claims, *claims]  # every job is delivered twice
    random.Random(1).shuffle(again)
    closings = [one for one in await asyncio.gather(*(finish(store, held) for held in again)) if one is not None]
    assert sorted(one.remaining for one in closings) == list(range(50))
    assert [one.remaining for one in closings if one.tally.verdicts.scored == 20].count(0) == 1
    async with store.read() as reader:
        evaluation = await reader.evaluation(WORKSPACE, evaluation_id)
    assert evaluation is not None
    assert (evaluation.status, evaluation.result) == ("completed", "fail")
    assert evaluation.progress == Progress(50, completed=50)
    assert evaluation.tally == tally_of([*SOME_VERDICTS] * 10)
    assert evaluation.finished_at is not None
    assert await counts(store, ["deliveries"]) == {"deliveries": 1}


async def test_a_delivery_is_written_once_and_only_for_a_webhook(store: DatabaseStore) -> None:
    with_one, without = await submit(store, webhook=True), await submit(store)
    for _ in range(2):
        for evaluation_id in (with_one, without):
            async with store.begin() as tx:
                await tx.add_delivery(evaluation_id, "forensic_evaluation.completed")
    async with store.begin() as tx:
        await tx.add_delivery(with_one, "forensic_evaluation.canceled")
        await tx.add_delivery("feval_none", "forensic_evaluation.completed")
    rows = await sql(store, "SELECT evaluation_id, event_type, webhook_id, state, attempts FROM deliveries")
    assert sorted(row[:2] for row in rows) == [
        (with_one, "forensic_evaluation.canceled"),
        (with_one, "forensic_evaluation.completed"),
    ]
    assert len({row[2] for row in rows}) == 2
    assert {row[3:] for row in rows} == {("pending", 0)}


async def test_failed_conversations_are_counted(store: DatabaseStore) -> None:
    [first, second] = await claim_all(store, await submit(store, 2))
    closings: list[Closing | None] = []
    for held, status in ((first, "failed"), (second, "completed")):
        async with store.begin() as tx:
            tally = await tx.conversation_tally(held.lease)
            assert tally is not None
            closings.append(
                await tx.finish_conversation(held.lease, "failed" if status == "failed" else "completed", None, tally)
            )
    assert [(one.failed, one.total, one.remaining, one.has_webhook) for one in closings if one] == [
        (1, 2, 1, False),
        (1, 2, 0, False),
    ]


async def test_cancel_ends_what_has_not_ended_and_fences_the_workers_out(store: DatabaseStore) -> None:
    evaluation_id = await submit(store, 4)
    done, busy, *_ = await conversation_ids(store, evaluation_id)
    held = await claim(store, done)
    assert held is not None
    await save(store, held, SOME_VERDICTS[:1])
    await finish(store, held)
    held = await claim(store, busy)
    assert held is not None
    await save(store, held, SOME_VERDICTS[1:])
    assert await cancel(store, evaluation_id) == "in_progress"
    async with store.read() as reader:
        evaluation = await reader.evaluation(WORKSPACE, evaluation_id)
        verdicts = (await reader.verdicts(WORKSPACE, evaluation_id, VerdictFilter(), EVERYTHING)).data
        found = [await reader.conversation(WORKSPACE, evaluation_id, index) for index in range(4)]
    assert evaluation is not None
    assert (evaluation.status, evaluation.result) == ("canceled", None)
    assert evaluation.progress == Progress(4, completed=1, canceled=3)
    assert evaluation.finished_at is not None
    assert evaluation.tally == tally_of(SOME_VERDICTS), "what was stored and paid for still counts"
    assert len(verdicts) == len(SOME_VERDICTS)
    assert [one.status for one in found if one] == ["completed", "canceled", "canceled", "canceled"]
    await fenced_out(store, held)
    assert await claim(store, busy) is None
    async with store.begin() as tx:
        assert await tx.due(window=9, republish_after_seconds=9) == []
    assert await cancel(store, evaluation_id) == "canceled"


async def test_cancel_tells_what_it_found(store: DatabaseStore) -> None:
    queued, completed = await submit(store), await submit(store)
    await finish(store, (await claim_all(store, completed))[0])
    assert await cancel(store, completed) == "completed"
    assert await cancel(store, queued, OTHER_WORKSPACE) is None
    assert await cancel(store, "feval_none") is None
    assert await cancel(store, queued) == "queued"
    async with store.read() as reader:
        evaluation = await reader.evaluation(WORKSPACE, completed)
    assert evaluation is not None
    assert (evaluation.status, evaluation.progress) == ("completed", Progress(1, completed=1))


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_cancel_and_finish_at_once_leave_one_end(store: DatabaseStore, seed: int) -> None:
    evaluation_id = await submit(store, 12, webhook=True)
    claims = await claim_all(store, evaluation_id)
    steps: list[Awaitable[object]] = [
        *(finish(store, held) for held in claims),
        cancel(store, evaluation_id),
        cancel(store, evaluation_id),
    ]
    random.Random(seed).shuffle(steps)
    await asyncio.gather(*steps)
    await cancel(store, evaluation_id)
    async with store.read() as reader:
        evaluation = await reader.evaluation(WORKSPACE, evaluation_id)
        them = [await reader.conversation(WORKSPACE, evaluation_id, index) for index in range(12)]
    assert evaluation is not None
    states = Counter(one.status for one in them if one is not None)
    assert (states["completed"], states["canceled"]) == (
        evaluation.progress.completed,
        evaluation.progress.canceled,
    )
    assert sum(states.values()) == 12
    assert evaluation.status == ("canceled" if states["canceled"] else "completed")


async def test_work_goes_on_while_others_claim_reap_cancel_and_delete(store: DatabaseStore) -> None:
    """Nothing here may deadlock or be resurrected, in whatever order the database runs it."""
    evaluations = [await submit(store, 8, webhook=True) for _ in range(4)]
    ids = [one for evaluation_id in evaluations for one in await conversation_ids(store, evaluation_id)]

    async def work(conversation_id: str) -> None:
        held = await claim(store, conversation_id, -1.0 if hash(conversation_id) % 3 else 60.0)
        if held is not None and await save(store, held, SOME_VERDICTS):
            await finish(store, held)

    async def reap() -> None:
        async with store.begin() as tx:
            await tx.expired(max_attempts=2, lease_seconds=60)
        async with store.begin() as tx:
            await tx.unpublish(await tx.due(window=20, republish_after_seconds=0.001))

    steps: list[Awaitable[object]] = [work(one) for one in [*ids, *ids]]
    steps += [reap() for _ in range(8)]
    steps += [cancel(store, evaluations[0]), cancel(store, evaluations[1]), delete(store, evaluations[1])]
    steps += [delete(store, evaluations[2]), cancel(store, evaluations[2]), delete(store, evaluations[2])]
    random.Random(5).shuffle(steps)
    await asyncio.gather(*steps)
    assert await sql(store, "SELECT count(*) FROM conversations WHERE evaluation_id = :id", id=evaluations[2]) == [(0,)]
    async with store.read() as reader:
        assert await reader.evaluation(WORKSPACE, evaluations[1]) is None
        assert await reader.evaluation(WORKSPACE, evaluations[2]) is None


async def test_delete_leaves_nothing_behind(store: DatabaseStore) -> None:
    evaluation_id = await submit(store, 2, webhook=True)
    async with store.begin() as tx:
        await tx.remember(WORKSPACE, "key", "a" * 64, evaluation_id)
    [held, other] = await claim_all(store, evaluation_id)
    await save(store, held, SOME_VERDICTS)
    await finish(store, held)
    await finish(store, other)
    assert not await delete(store, evaluation_id, OTHER_WORKSPACE)
    assert await delete(store, evaluation_id)
    assert not await delete(store, evaluation_id)
    left = await counts(store, set(metadata.tables) - {"workspaces", "api_keys"})
    assert set(left.values()) == {0}
    async with store.read() as reader:
        assert await reader.evaluation(WORKSPACE, evaluation_id) is None
        assert await reader.idempotent(WORKSPACE, "key") is None


async def test_a_deleted_evaluation_stays_deleted_whatever_its_workers_do(store: DatabaseStore) -> None:
    evaluation_id = await submit(store, 2)
    [held, _] = await claim_all(store, evaluation_id)
    assert await delete(store, evaluation_id)
    await fenced_out(store, held)
    assert await finish(store, held) is None
    async with store.begin() as tx:
        await tx.close_evaluation(evaluation_id, "completed", "pass", None)
        assert await tx.expired(max_attempts=1, lease_seconds=1) == []
    assert await counts(store, ["evaluations", "conversations", "verdicts"]) == {
        "evaluations": 0,
        "conversations": 0,
        "verdicts": 0,
    }


async def test_an_end_is_final(store: DatabaseStore) -> None:
    evaluation_id = await submit(store)
    await cancel(store, evaluation_id)
    async with store.begin() as tx:
        await tx.close_evaluation(evaluation_id, "completed", "pass", None)
    async with store.read() as reader:
        evaluation = await reader.evaluation(WORKSPACE, evaluation_id)
    assert evaluation is not None
    assert (evaluation.status, evaluation.result) == ("canceled", None)


async def test_deletion_during_a_save_wins_or_waits(store: DatabaseStore) -> None:
    evaluation_id = await submit(store, 6)
    claims: list[Claim] = await claim_all(store, evaluation_id)
    await asyncio.gather(*(save(store, held, SOME_VERDICTS) for held in claims), delete(store, evaluation_id))
    assert await counts(store, ["verdicts", "findings"]) == {"verdicts": 0, "findings": 0}
