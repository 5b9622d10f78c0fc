import time
from dataclasses import replace
from datetime import timedelta, timezone
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.evaluation.model import StoredFinding, StoredVerdict
from app.findings.model import Subject, failed, rank
from app.pipeline.errors import CursorError
from app.pipeline.ports import Reader
from app.pipeline.values import ConversationFilter, EvaluationFilter, FindingFilter, Page, Slice, VerdictFilter
from app.storage.store import DatabaseStore
from tests.storage.making import (
    EVERYTHING,
    OTHER_WORKSPACE,
    SOME_VERDICTS,
    WORKSPACE,
    claim_all,
    finding,
    finish,
    save,
    submit,
    verdict,
)

LISTS = ("evaluations", "conversations", "verdicts", "findings")
FILTERS = {
    "evaluations": EvaluationFilter(),
    "conversations": ConversationFilter(),
    "verdicts": VerdictFilter(),
    "findings": FindingFilter(),
}


async def page_of(
    reader: Reader, name: str, evaluation_id: str, page: Page, *, where: Any = None, workspace_id: str = WORKSPACE
) -> Slice[Any]:
    """Read any of the four lists."""
    where = where or FILTERS[name]
    if name == "evaluations":
        return await reader.evaluations(workspace_id, where, page)
    read: Any = getattr(reader, name)
    found: Slice[Any] = await read(workspace_id, evaluation_id, where, page)
    return found


async def judged(store: DatabaseStore, number: int = 2, workspace_id: str = WORKSPACE) -> str:
    """Return an evaluation with verdicts and findings about each of its conversations."""
    evaluation_id = await submit(store, number, workspace_id=workspace_id)
    if workspace_id == WORKSPACE:
        for held in await claim_all(store, evaluation_id):
            await save(store, held, SOME_VERDICTS)
    return evaluation_id


async def test_nothing_of_a_workspace_is_seen_from_another(store: DatabaseStore) -> None:
    evaluation_id = await judged(store)
    foreign = await submit(store, workspace_id=OTHER_WORKSPACE)
    async with store.read() as reader:
        assert await reader.evaluation(OTHER_WORKSPACE, evaluation_id) is None
        assert await reader.conversation(OTHER_WORKSPACE, evaluation_id, 0) is None
        assert await reader.body(OTHER_WORKSPACE, evaluation_id, 0) is None
        for name in LISTS[1:]:
            assert (await page_of(reader, name, evaluation_id, EVERYTHING, workspace_id=OTHER_WORKSPACE)).data == []
            assert (await page_of(reader, name, evaluation_id, EVERYTHING)).data
        own = await reader.evaluations(OTHER_WORKSPACE, EvaluationFilter(), EVERYTHING)
        assert [one.id for one in own.data] == [foreign]
        assert await reader.evaluation(OTHER_WORKSPACE, foreign) is not None


async def test_what_is_not_there_is_none_or_empty(store: DatabaseStore) -> None:
    evaluation_id = await submit(store)
    async with store.read() as reader:
        for missing in ("feval_none", "", "\0", "\ud800", "x" * 10_000):
            assert await reader.evaluation(WORKSPACE, missing) is None
            assert (await page_of(reader, "verdicts", missing, EVERYTHING)).data == []
        for index in (-1, 1, 2**31, 2**70):
            assert await reader.conversation(WORKSPACE, evaluation_id, index) is None
            assert await reader.body(WORKSPACE, evaluation_id, index) is None


@pytest.mark.parametrize("name", LISTS)
async def test_a_cursor_must_be_an_object_of_the_list(store: DatabaseStore, name: str) -> None:
    evaluation_id, other = await judged(store), await judged(store)
    foreign = await submit(store, workspace_id=OTHER_WORKSPACE)
    async with store.read() as reader:
        elsewhere = [(await page_of(reader, one, other, EVERYTHING)).data[-1].id for one in LISTS[1:]]
        for after in ("", "nonsense", "\0\ud800", "x" * 5000, foreign, *elsewhere):
            with pytest.raises(CursorError):
                await page_of(reader, name, evaluation_id, Page(after=after))
        ours = (await page_of(reader, name, evaluation_id, EVERYTHING)).data[-1].id
        assert (await page_of(reader, name, evaluation_id, Page(after=ours))).data == []


async def test_filters_of_evaluations(store: DatabaseStore) -> None:
    queued, busy, ended = await submit(store), await submit(store), await submit(store)
    await claim_all(store, busy)
    [held] = await claim_all(store, ended)
    await finish(store, held)

    async def ids(where: EvaluationFilter) -> list[str]:
        async with store.read() as reader:
            return [one.id for one in (await reader.evaluations(WORKSPACE, where, EVERYTHING)).data]

    assert await ids(EvaluationFilter(status=("queued", "in_progress"))) == [queued, busy]
    assert await ids(EvaluationFilter(status=("completed",), result=("fail",))) == []
    assert await ids(EvaluationFilter(status=("\0",))) == []
    async with store.read() as reader:
        middle = await reader.evaluation(WORKSPACE, busy)
    assert middle is not None
    moment = middle.created_at
    hour = timedelta(hours=1)
    assert await ids(EvaluationFilter(created_after=moment - hour, created_before=moment + hour)) == [
        queued,
        busy,
        ended,
    ]
    assert await ids(EvaluationFilter(created_after=moment + hour)) == []
    assert await ids(EvaluationFilter(created_before=moment - hour)) == []
    assert busy not in await ids(EvaluationFilter(created_after=moment))
    assert busy not in await ids(EvaluationFilter(created_before=moment))


async def test_times_mean_the_same_in_every_zone(store: DatabaseStore, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluation_id = await submit(store)
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    time.tzset()
    try:
        async with store.read() as reader:
            evaluation = await reader.evaluation(WORKSPACE, evaluation_id)
            assert evaluation is not None
            moment = evaluation.created_at.astimezone(timezone(timedelta(hours=-9)))
            minute = timedelta(minutes=1)
            for where, there in (
                (EvaluationFilter(created_after=moment - minute, created_before=moment + minute), True),
                (EvaluationFilter(created_after=moment + minute), False),
                (EvaluationFilter(created_before=moment - minute), False),
            ):
                assert bool((await reader.evaluations(WORKSPACE, where, EVERYTHING)).data) == there
    finally:
        monkeypatch.undo()
        time.tzset()


async def test_filters_of_verdicts_findings_and_conversations(store: DatabaseStore) -> None:
    evaluation_id = await judged(store)
    async with store.read() as reader:

        async def verdicts(**where: Any) -> list[tuple[int, str, str]]:
            found = await reader.verdicts(WORKSPACE, evaluation_id, VerdictFilter(**where), EVERYTHING)
            return [(one.conversation, one.verdict.dimension, one.verdict.decision.status) for one in found.data]

        async def findings(**where: Any) -> list[tuple[int, str]]:
            found = await reader.findings(WORKSPACE, evaluation_id, FindingFilter(**where), EVERYTHING)
            return [(one.conversation, one.severity) for one in found.data]

        assert len(await verdicts()) == 8
        assert await verdicts(conversation=(1,), dimension=("relevance", "coherence"), passed=True) == [
            (1, "relevance", "scored")
        ]
        assert await verdicts(passed=False) == [(0, "coherence", "scored"), (1, "coherence", "scored")]
        assert await verdicts(family=("tool",), conversation=(0, 7)) == [(0, "tool_selection", "error")]
        assert await verdicts(status=("not_applicable", "error"), conversation=(1,)) == [
            (1, "coherence", "not_applicable"),
            (1, "tool_selection", "error"),
        ]
        assert await verdicts(conversation=(2**40,)) == []
        assert len(await verdicts(conversation=(2**40, 0))) == 4
        assert await findings() == [(0, "high"), (0, "low"), (1, "high"), (1, "low")]
        assert await findings(severity=("low",), conversation=(1,)) == [(1, "low")]
        assert await findings(min_severity="medium") == [(0, "high"), (1, "high")]
        assert await findings(min_severity="info", code=("wrong",), dimension=("coherence",)) == await findings()
        assert await findings(min_severity="critical") == []
        assert await findings(code=("\ud800",)) == []
        found = await reader.conversations(WORKSPACE, evaluation_id, ConversationFilter(("in_progress",)), EVERYTHING)
        assert len(found.data) == 2
        found = await reader.conversations(WORKSPACE, evaluation_id, ConversationFilter(("failed",)), EVERYTHING)
        assert found.data == []


def place_of(one: StoredVerdict | StoredFinding) -> tuple[int, int, str]:
    """Return where an object stands in its list."""
    event = one.finding.event if isinstance(one, StoredFinding) else one.verdict.subject.event
    return (one.conversation, -1 if event is None else event, one.id)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    events=st.lists(st.lists(st.one_of(st.none(), st.integers(0, 2)), max_size=5), min_size=1, max_size=3),
    limit=st.integers(1, 4),
    descending=st.booleans(),
    lowest=st.sampled_from([None, "medium"]),
)
async def test_pages_put_together_are_the_list(
    store: DatabaseStore, events: list[list[int | None]], limit: int, descending: bool, lowest: str | None
) -> None:
    evaluation_id = await submit(store, len(events))
    for held, of_one in zip(await claim_all(store, evaluation_id), events, strict=True):
        severities = [("low", "high")[number % 2] for number in range(len(of_one))]
        decisions = [
            failed("bad", [finding(severity, event)])  # type: ignore[arg-type]  # both are severities
            for severity, event in zip(severities, of_one, strict=True)
        ]
        await save(
            store,
            held,
            [
                verdict(f"d{number}", decision, subject=Subject("call", event=event))
                for number, (decision, event) in enumerate(zip(decisions, of_one, strict=True))
            ],
        )
    async with store.read() as reader:
        for name in ("conversations", "verdicts", "findings"):
            where = FindingFilter(min_severity=lowest) if name == "findings" else FILTERS[name]
            read = await pages(reader, name, evaluation_id, where, Page(limit, None, descending))
            whole = (await page_of(reader, name, evaluation_id, EVERYTHING, where=where)).data
            assert read == (list(reversed(whole)) if descending else list(whole))
            if name == "conversations":
                assert [one.index for one in whole] == list(range(len(events)))
            else:
                assert [place_of(one) for one in whole] == sorted(place_of(one) for one in whole)
            if name == "findings" and lowest:
                assert all(rank(one.severity) >= rank("medium") for one in whole)


async def pages(reader: Reader, name: str, evaluation_id: str, where: Any, page: Page) -> list[Any]:
    """Read a list page by page until it says that there is no more."""
    read: list[Any] = []
    while True:
        part = await page_of(reader, name, evaluation_id, page, where=where)
        read += part.data
        assert len(part.data) == page.limit or not part.has_more
        assert part.data or page.after is None, "there was said to be more"
        if not part.has_more:
            return read
        page = replace(page, after=read[-1].id)


async def test_evaluations_are_paged_in_both_directions(store: DatabaseStore) -> None:
    ids = [await submit(store) for _ in range(5)]
    async with store.read() as reader:
        for descending in (False, True):
            read = await pages(reader, "evaluations", "", EvaluationFilter(), Page(2, None, descending))
            assert [one.id for one in read] == (ids[::-1] if descending else ids)


async def test_a_read_sees_one_moment(store: DatabaseStore) -> None:
    evaluation_id = await submit(store, 2)
    async with store.read() as reader:
        before = await reader.evaluation(WORKSPACE, evaluation_id)
        await claim_all(store, evaluation_id)
        assert await reader.evaluation(WORKSPACE, evaluation_id) == before
    async with store.read() as reader:
        assert await reader.evaluation(WORKSPACE, evaluation_id) != before
