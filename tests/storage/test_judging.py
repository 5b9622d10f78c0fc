import asyncio
import math
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.findings.model import (
    SEVERITIES,
    Coverage,
    Decision,
    Evidence,
    Subject,
    Usage,
    Verdict,
    Votes,
    errored,
    failed,
    not_scored,
    passed,
)
from app.pipeline.values import FindingFilter, VerdictFilter
from app.storage.store import DatabaseStore
from tests.storage.making import (
    EVERYTHING,
    SOME_VERDICTS,
    WORKSPACE,
    claim,
    claim_all,
    counts,
    finding,
    finish,
    save,
    sql,
    submit,
    verdict,
)
from tests.tallies import tally_of

FULL = Verdict(
    "argument_validity",
    "tool",
    "7",
    Subject("call", 2, 5, "call_9", "/expectations/0"),
    "1-5",
    3.0,
    failed(
        "because",
        [
            finding("low", 5, turn=2),
            finding(
                "critical",
                evidence=(
                    Evidence("tools", None, "/0/parameters", None, None, "{}", "context"),
                    Evidence("items", 4, "/arguments", 3, 9, "words", "support"),
                ),
            ),
        ],
        label="wrong",
        score=1.5,
        method="hybrid",
        model="gpt-large",
        prompt_sha256="ab" * 32,
        coverage=Coverage(3, 9, 2),
        votes=Votes(3, 2),
        disputed=True,
        dropped_findings=4,
        details={"map": {"x": [1, 2.5, None, "y"]}},
        usage=Usage(3, 100, 20, 30, 0.125),
        attempts=2,
    ),
)


async def test_a_verdict_comes_back_as_it_was_decided(store: DatabaseStore) -> None:
    evaluation_id = await submit(store)
    [held] = await claim_all(store, evaluation_id)
    assert await save(store, held, [FULL])
    async with store.read() as reader:
        [stored] = (await reader.verdicts(WORKSPACE, evaluation_id, VerdictFilter(), EVERYTHING)).data
        found = (await reader.findings(WORKSPACE, evaluation_id, FindingFilter(), EVERYTHING)).data
    decision = stored.verdict.decision
    assert decision.findings == ()
    for name in Decision.__slots__:
        if name != "findings":
            assert getattr(decision, name) == getattr(FULL.decision, name), name
    assert replace(FULL, decision=decision) == stored.verdict
    assert (stored.evaluation_id, stored.conversation) == (evaluation_id, 0)
    assert stored.created_at.tzinfo is not None
    assert [one.finding for one in found] == list(reversed(FULL.decision.findings))
    assert {(one.verdict_id, one.dimension, one.family, one.conversation) for one in found} == {
        (stored.id, "argument_validity", "tool", 0)
    }


async def test_a_verdict_is_stored_once_and_so_are_its_findings(store: DatabaseStore) -> None:
    evaluation_id = await submit(store)
    [held] = await claim_all(store, evaluation_id)
    assert await save(store, held, SOME_VERDICTS)
    changed = [replace(one, decision=errored("timeout", "late")) for one in SOME_VERDICTS[:1]]
    assert await save(store, held, [*changed, *SOME_VERDICTS, *SOME_VERDICTS])
    newer = replace(SOME_VERDICTS[1], judge_version="2")
    assert await save(store, held, [newer])
    assert await save(store, held, [])
    assert await counts(store, ["verdicts", "findings"]) == {"verdicts": 5, "findings": 4}
    assert await sql(store, "SELECT status FROM verdicts WHERE dimension = 'relevance'") == [("scored",)]


async def test_many_findings_are_stored_once(store: DatabaseStore) -> None:
    evaluation_id = await submit(store)
    [held] = await claim_all(store, evaluation_id)
    text = "\0\ud800 é\U0001f600"
    decision = failed("bad", [finding("low", event, title=text) for event in range(30)])
    some = [verdict(name, decision) for name in ("a", "b", "c")]
    assert await save(store, held, some[:2])
    assert await save(store, held, some)
    async with store.read() as reader:
        found = (await reader.findings(WORKSPACE, evaluation_id, FindingFilter(), EVERYTHING)).data
    assert Counter(one.dimension for one in found) == {"a": 30, "b": 30, "c": 30}
    assert {one.finding.title for one in found} == {"\ufffd\ufffd é\U0001f600"}
    assert found[0].finding == finding("low", 0, title="\ufffd\ufffd é\U0001f600")


async def test_verdicts_saved_at_once_do_not_meet(store: DatabaseStore) -> None:
    [held] = await claim_all(store, await submit(store))
    saved = await asyncio.gather(*(save(store, held, SOME_VERDICTS) for _ in range(8)))
    assert all(saved)
    assert await counts(store, ["verdicts", "findings"]) == {"verdicts": 4, "findings": 2}


async def test_not_a_number_is_refused_and_nothing_is_stored(store: DatabaseStore) -> None:
    [held] = await claim_all(store, await submit(store))
    for value in (math.nan, math.inf):
        with pytest.raises(ValueError, match="JSON compliant"):
            await save(store, held, [verdict(), verdict("coherence", passed("fine", details={"x": value}))])
    assert await counts(store, ["verdicts"]) == {"verdicts": 0}


decisions = st.one_of(
    st.builds(passed, st.just("fine"), usage=st.builds(Usage, st.integers(0, 2), st.integers(0, 9))),
    st.builds(
        lambda severities, usage: failed("bad", [finding(one) for one in severities], usage=usage),
        st.lists(st.sampled_from(SEVERITIES), min_size=1, max_size=4).filter(lambda them: set(them) != {"info"}),
        st.builds(Usage, st.integers(1, 2), completion_tokens=st.integers(0, 9), cost_usd=st.sampled_from([0.5, 0.25])),
    ),
    st.builds(not_scored, st.just("judge_abstained"), st.just("no")),
    st.builds(errored, st.just("timeout"), st.just("late"), usage=st.just(Usage(1, cost_usd=None))),
)
verdict_lists = st.lists(
    st.builds(
        lambda dimension, family, turn, decision: verdict(
            dimension, decision, family=family, subject=Subject("turn", turn=turn)
        ),
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["output", "expectation"]),
        st.integers(0, 5),
        decisions,
    ),
    max_size=12,
    unique_by=lambda one: one.key,
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(verdict_lists, min_size=1, max_size=3))
async def test_tallies_in_sql_agree_with_the_roll_up(store: DatabaseStore, parts: list[list[Verdict]]) -> None:
    evaluation_id = await submit(store, len(parts))
    closing: Any = None
    for held, verdicts in zip(await claim_all(store, evaluation_id), parts, strict=True):
        await save(store, held, verdicts)
        async with store.begin() as tx:
            assert await tx.conversation_tally(held.lease) == tally_of(verdicts)
        closing = await finish(store, held)
    total = tally_of(one for verdicts in parts for one in verdicts)
    assert closing.tally == total
    async with store.read() as reader:
        evaluation = await reader.evaluation(WORKSPACE, evaluation_id)
    assert evaluation is not None
    assert evaluation.tally == total


async def test_whoever_ends_or_takes_over_a_conversation_waits_for_a_save_under_way(store: DatabaseStore) -> None:
    """Else a fence that was checked in time could be passed too late."""
    taken, canceled = await submit(store), await submit(store)
    for evaluation_id in (taken, canceled):
        [held] = await claim_all(store, evaluation_id, -1)

        async def interfere(evaluation_id: str = evaluation_id, conversation: str = held.lease.conversation_id) -> Any:
            if evaluation_id == taken:
                return await claim(store, conversation)
            async with store.begin() as tx:
                return await tx.cancel(WORKSPACE, evaluation_id)

        async with store.begin() as tx:
            assert await tx.save_verdicts(held.lease, SOME_VERDICTS[:1])
            other = asyncio.create_task(interfere())
            await asyncio.sleep(0.1)
            assert not other.done()
        found = await other
        if evaluation_id == taken:
            assert found.done == {SOME_VERDICTS[0].key}, "what was saved meanwhile is not judged again"
    async with store.read() as reader:
        evaluation = await reader.evaluation(WORKSPACE, canceled)
    assert evaluation is not None
    assert evaluation.tally == tally_of(SOME_VERDICTS[:1])
