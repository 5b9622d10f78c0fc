import asyncio
from collections.abc import Sequence

import pytest

from app.evaluation.model import DEFAULT_WORKSPACE, Options
from app.findings.model import Subject, Usage, Verdict, passed
from app.judges.contract import Answer, JudgeModelError, Prompt
from app.pipeline import cancel, read, recover
from app.pipeline.access import Doorman, ensure_bootstrap_key
from app.pipeline.errors import FinishedError, NotFoundError
from app.pipeline.judge import Examiner
from app.pipeline.recover import dispatch, publish, reap
from app.pipeline.values import FindingFilter, Page, VerdictFilter
from app.queueing.in_process import InProcessQueue
from tests.pipeline.conftest import AGENT, CHAT, CODE_JUDGES, Bureau


class LimitedModel:
    """An endpoint that asks for a pause until it is told otherwise."""

    def __init__(self) -> None:
        self.asked = 0

    async def ask(self, prompt: Prompt) -> Answer:
        self.asked += 1
        raise JudgeModelError("rate_limited", "slow down", retry_after_seconds=3600, usage=Usage(1))


class HungModel:
    """An endpoint that never answers."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def ask(self, prompt: Prompt) -> Answer:
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


async def dimensions(bureau: Bureau, evaluation_id: str) -> list[tuple[str, str, str | None]]:
    found = await read.verdicts(bureau.store, DEFAULT_WORKSPACE, evaluation_id, VerdictFilter(), Page(100))
    return sorted(
        (each.verdict.dimension, each.verdict.decision.status, each.verdict.decision.reason_code) for each in found.data
    )


async def test_a_conversation_is_judged_once_however_often_it_is_asked_for(bureau: Bureau) -> None:
    evaluation_id = await bureau.add([AGENT, CHAT], webhook=True)
    examiner = bureau.examiner()
    ids = await bureau.due()
    await asyncio.gather(*(examiner.judge(each) for each in ids * 5))
    evaluation = await bureau.evaluation(evaluation_id)
    assert (evaluation.status, evaluation.result, evaluation.progress.completed) == ("completed", "pass", 2)
    assert [name for name, _, _ in await dimensions(bureau, evaluation_id)] == sorted(CODE_JUDGES)
    assert bureau.deliveries() == [(evaluation_id, "forensic_evaluation.completed")]
    assert await bureau.due() == []


async def test_without_an_endpoint_model_judges_say_so(bureau: Bureau) -> None:
    evaluation_id = await bureau.add([CHAT], judges=("task_completion",))
    await bureau.examiner().judge((await bureau.due())[0])
    evaluation = await bureau.evaluation(evaluation_id)
    assert await dimensions(bureau, evaluation_id) == [("task_completion", "not_scored", "no_judge_model")]
    assert (evaluation.status, evaluation.result, evaluation.result_reason) == ("completed", None, "nothing_scored")


async def test_a_long_pause_puts_the_conversation_back_and_burns_no_attempt(bureau: Bureau) -> None:
    evaluation_id = await bureau.add([AGENT], judges=("task_completion", *CODE_JUDGES))
    model = LimitedModel()
    await bureau.examiner(model, max_attempts=1).judge((await bureau.due())[0])
    evaluation = await bureau.evaluation(evaluation_id)
    assert (evaluation.status, evaluation.progress.queued, model.asked) == ("in_progress", 1, 1)
    assert evaluation.tally.usage.requests == 1  # paid for, though asked again later
    assert len(await dimensions(bureau, evaluation_id)) == len(CODE_JUDGES)
    assert await bureau.due() == []  # not for an hour


async def test_nobody_waits_for_ever(bureau: Bureau) -> None:
    evaluation_id = await bureau.add([CHAT], judges=("task_completion",))
    await bureau.examiner(LimitedModel(), retry_deadline_seconds=0).judge((await bureau.due())[0])
    assert await dimensions(bureau, evaluation_id) == [("task_completion", "error", "rate_limited")]
    assert (await bureau.evaluation(evaluation_id)).result == "error"


async def test_a_judge_of_a_newer_version_is_left_to_a_newer_worker(bureau: Bureau) -> None:
    evaluation_id = await bureau.add([CHAT], judges=("task_completion", "from_the_future"))
    await bureau.examiner(max_attempts=1).judge((await bureau.due())[0])
    assert (await bureau.evaluation(evaluation_id)).progress.queued == 1
    assert await dimensions(bureau, evaluation_id) == []


async def test_a_poison_conversation_ends_and_takes_nobody_along(bureau: Bureau) -> None:
    evaluation_id = await bureau.add([b"no json at all", CHAT], judges=("task_completion",), webhook=True)
    examiner = bureau.examiner(max_attempts=1)
    for each in await bureau.due():
        await examiner.judge(each)
    evaluation = await bureau.evaluation(evaluation_id)
    assert (evaluation.status, evaluation.progress.failed, evaluation.progress.completed) == ("completed", 1, 1)
    assert ("task_completion", "error", "internal_error") in await dimensions(bureau, evaluation_id)
    assert bureau.deliveries() == [(evaluation_id, "forensic_evaluation.completed")]


async def test_an_evaluation_fails_when_all_its_conversations_do(bureau: Bureau) -> None:
    evaluation_id = await bureau.add([b"no json", b"none here"], webhook=True)
    examiner = bureau.examiner(max_attempts=1)
    for each in await bureau.due():
        await examiner.judge(each)
    assert (await bureau.evaluation(evaluation_id)).status == "failed"
    assert bureau.deliveries() == [(evaluation_id, "forensic_evaluation.failed")]


async def test_a_poison_conversation_is_tried_again_first(bureau: Bureau) -> None:
    evaluation_id = await bureau.add([b"no json"])
    await bureau.examiner(max_attempts=2).judge((await bureau.due())[0])
    evaluation = await bureau.evaluation(evaluation_id)
    assert (evaluation.status, evaluation.progress.queued) == ("in_progress", 1)


async def test_a_lost_worker_is_replaced_and_what_it_stored_stays(bureau: Bureau) -> None:
    evaluation_id = await bureau.add([AGENT], judges=("task_completion", *CODE_JUDGES))
    conversation_id = (await bureau.due())[0]
    model = HungModel()
    lost = asyncio.create_task(bureau.examiner(model, lease_seconds=1).judge(conversation_id))
    await model.asked.wait()
    while len(await dimensions(bureau, evaluation_id)) < len(CODE_JUDGES):
        await asyncio.sleep(0.02)
    bureau.expire_leases()
    await bureau.examiner().judge(conversation_id)
    await asyncio.wait_for(lost, 5)
    evaluation = await bureau.evaluation(evaluation_id)
    assert evaluation.status == "completed"
    assert len(await dimensions(bureau, evaluation_id)) == len(CODE_JUDGES) + 1


@pytest.mark.parametrize("attempts", [1, 2])
async def test_the_reaper_puts_back_or_ends_what_nobody_works_on(bureau: Bureau, attempts: int) -> None:
    evaluation_id = await bureau.add([CHAT], judges=("task_completion",))
    async with bureau.store.begin() as tx:
        assert await tx.claim((await tx.due(window=10, republish_after_seconds=0))[0], 0.01) is not None
    await asyncio.sleep(0.05)
    assert await reap(bureau.store, max_attempts=attempts) == (1 if attempts == 1 else 0)
    evaluation = await bureau.evaluation(evaluation_id)
    if attempts == 1:
        assert evaluation.status == "failed"
        assert await dimensions(bureau, evaluation_id) == [("task_completion", "error", "worker_lost")]
    else:
        assert evaluation.progress.queued == 1
        assert len(await bureau.due()) == 1


async def test_told_to_stop_it_gives_the_work_back(bureau: Bureau) -> None:
    await bureau.add([CHAT], judges=("task_completion",))
    model = HungModel()
    task = asyncio.create_task(bureau.examiner(model).judge((await bureau.due())[0]))
    await model.asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with bureau.store.begin() as tx:
        again = await tx.claim((await tx.due(window=10, republish_after_seconds=0))[0], 30)
    assert again is not None
    assert again.attempt == 1


async def test_a_canceled_conversation_is_not_written_to(bureau: Bureau) -> None:
    evaluation_id = await bureau.add([CHAT, CHAT], judges=("task_completion",), webhook=True)
    model = HungModel()
    task = asyncio.create_task(bureau.examiner(model, lease_seconds=0.3).judge((await bureau.due())[0]))
    await model.asked.wait()
    for _ in range(2):
        assert (await cancel.cancel(bureau.store, DEFAULT_WORKSPACE, evaluation_id)).status == "canceled"
    await asyncio.wait_for(task, 5)
    evaluation = await bureau.evaluation(evaluation_id)
    assert (evaluation.status, evaluation.result, evaluation.progress.canceled) == ("canceled", None, 2)
    assert await dimensions(bureau, evaluation_id) == []
    assert bureau.deliveries() == [(evaluation_id, "forensic_evaluation.canceled")]


async def test_a_finished_evaluation_cannot_be_canceled_but_deleted(bureau: Bureau) -> None:
    evaluation_id = await bureau.add([AGENT], webhook=True)
    await bureau.examiner().judge((await bureau.due())[0])
    with pytest.raises(FinishedError):
        await cancel.cancel(bureau.store, DEFAULT_WORKSPACE, evaluation_id)
    await cancel.delete(bureau.store, DEFAULT_WORKSPACE, evaluation_id)
    with pytest.raises(NotFoundError):
        await cancel.delete(bureau.store, DEFAULT_WORKSPACE, evaluation_id)
    with pytest.raises(NotFoundError):
        await read.findings(bureau.store, DEFAULT_WORKSPACE, evaluation_id, FindingFilter(), Page())
    assert bureau.deliveries() == []


async def test_deleted_while_being_judged_it_stays_deleted(bureau: Bureau) -> None:
    evaluation_id = await bureau.add([CHAT], judges=("task_completion",))
    model = HungModel()
    task = asyncio.create_task(bureau.examiner(model, lease_seconds=0.3).judge((await bureau.due())[0]))
    await model.asked.wait()
    await cancel.delete(bureau.store, DEFAULT_WORKSPACE, evaluation_id)
    await asyncio.wait_for(task, 5)
    assert await bureau.evaluation(evaluation_id) is None


async def test_a_queue_that_is_away_loses_nothing(bureau: Bureau) -> None:
    await bureau.add([CHAT, CHAT])
    heard: list[str] = []

    async def hear(conversation_id: str) -> None:
        heard.append(conversation_id)

    away, back = InProcessQueue(hear, 2), InProcessQueue(hear, 2)
    await away.aclose()
    assert await publish(bureau.store, away) == 0
    assert await publish(bureau.store, back) == 2
    assert await publish(bureau.store, back) == 0  # rung for and trusted, for a while
    assert await publish(bureau.store, back, republish_after_seconds=0) == 2
    await asyncio.sleep(0)
    await back.aclose()


async def test_waiting_ends_with_the_evaluation_and_changes_tell_each_state(bureau: Bureau) -> None:
    evaluation_id = await bureau.add([CHAT], judges=("task_completion",))
    waiting = asyncio.create_task(read.wait(bureau.store, DEFAULT_WORKSPACE, evaluation_id, 30))

    async def states() -> list[str]:
        return [each.status async for each in read.changes(bureau.store, DEFAULT_WORKSPACE, evaluation_id)]

    watching = asyncio.create_task(states())
    await asyncio.sleep(0.1)
    await bureau.examiner().judge((await bureau.due())[0])
    assert (await asyncio.wait_for(waiting, 5)).status == "completed"
    assert await asyncio.wait_for(watching, 5) == ["queued", "completed"]
    assert (await read.wait(bureau.store, DEFAULT_WORKSPACE, evaluation_id, 0)).finished


async def test_votes_cost_what_they_cost(bureau: Bureau) -> None:
    evaluation_id = await bureau.add([CHAT], judges=("task_completion",), options=Options(votes=3))
    model = LimitedModel()
    await bureau.examiner(model, retry_deadline_seconds=0).judge((await bureau.due())[0])
    assert (await bureau.evaluation(evaluation_id)).tally.usage.requests == 1


async def test_what_was_not_examined_never_looks_passed(bureau: Bureau) -> None:
    evaluation_id = await bureau.add([AGENT], judges=("argument_validity", "tool_selection"))
    async with bureau.store.begin() as tx:
        claim = await tx.claim((await tx.due(window=10, republish_after_seconds=0))[0], 30)
        assert claim is not None
        first = Verdict(
            "argument_validity", "tool", "1", Subject("call", 0, 1, "a"), "binary", None, passed("The first of many.")
        )
        assert await tx.save_verdicts(claim.lease, [first])
    bureau.expire_leases()
    assert await reap(bureau.store, max_attempts=1) == 1
    assert (await bureau.evaluation(evaluation_id)).result == "partial"
    assert ("argument_validity", "error", "worker_lost") in await dimensions(bureau, evaluation_id)


async def test_a_judge_that_never_comes_back_ends_as_an_error(bureau: Bureau) -> None:
    evaluation_id = await bureau.add([AGENT], judges=(*CODE_JUDGES, "from_the_past"))
    await bureau.examiner(retry_deadline_seconds=0).judge((await bureau.due())[0])
    evaluation = await bureau.evaluation(evaluation_id)
    assert (evaluation.status, evaluation.result) == ("completed", "partial")
    assert ("from_the_past", "error", "unknown_judge") in await dimensions(bureau, evaluation_id)


@pytest.mark.parametrize(("judges", "ends"), [(("task_completion",), True), (("task_completion", *CODE_JUDGES), False)])
async def test_an_attempt_that_takes_too_long_counts_only_if_it_was_in_vain(
    bureau: Bureau, judges: tuple[str, ...], ends: bool
) -> None:
    evaluation_id = await bureau.add([AGENT], judges=judges)
    examiner = bureau.examiner(HungModel(), attempt_seconds=0.5, max_attempts=1)
    await examiner.judge((await bureau.due())[0])
    evaluation = await bureau.evaluation(evaluation_id)
    assert (evaluation.status == "failed", evaluation.progress.queued) == (ends, 0 if ends else 1)


async def test_conversations_of_an_evaluation_share_its_budget(bureau: Bureau) -> None:
    class Dear:
        asked = 0

        async def ask(self, prompt: Prompt) -> Answer:
            self.asked += 1
            label = {"reasoning": "Fine.", "label": "5", "findings": []}
            return Answer(label, "m", "0" * 64, Usage(1, 900, 0, 100))

    evaluation_id = await bureau.add([CHAT] * 6, judges=("task_completion",), options=Options(max_tokens=2000))
    model = Dear()
    examiner = bureau.examiner(model)
    for each in await bureau.due():
        await examiner.judge(each)
    assert model.asked == 2
    counts = (await bureau.evaluation(evaluation_id)).tally.verdicts
    assert (counts.passed, counts.not_scored) == (2, 4)


async def test_however_often_it_rings_the_queue_stays_short(bureau: Bureau, monkeypatch: pytest.MonkeyPatch) -> None:
    class Rung:
        def __init__(self) -> None:
            self.jobs: list[str] = []

        async def judge(self, conversation_ids: Sequence[str]) -> None:
            self.jobs += conversation_ids

        async def length(self) -> int:
            return len(self.jobs)

        async def check(self) -> None:
            return

    await bureau.add([CHAT] * 50)
    monkeypatch.setattr(recover, "WINDOW", 20)
    queue = Rung()
    for _ in range(10):
        await publish(bureau.store, queue, republish_after_seconds=0)
    assert 10 <= len(queue.jobs) <= 20
    queue.jobs.clear()  # what Redis forgot is rung for again
    await publish(bureau.store, queue, republish_after_seconds=0)
    assert queue.jobs


async def test_a_sweep_that_fails_is_repeated(bureau: Bureau, monkeypatch: pytest.MonkeyPatch) -> None:
    sweeps = 0

    async def failing(*_: object, **__: object) -> int:
        nonlocal sweeps
        sweeps += 1
        raise ZeroDivisionError

    async def nothing(_: str) -> None:
        return

    monkeypatch.setattr(recover, "reap", failing)
    task = asyncio.create_task(dispatch(bureau.store, InProcessQueue(nothing, 1), tick_seconds=0.01))
    while sweeps < 3:
        await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_the_bootstrap_key_replaces_the_one_before(bureau: Bureau) -> None:
    await ensure_bootstrap_key(bureau.store, "fk_second_0123456789")
    assert await Doorman(bureau.store).authenticate("fk_bootstrap_0123456789") is None
    assert await Doorman(bureau.store).authenticate("fk_second_0123456789") is not None
    await ensure_bootstrap_key(bureau.store, "fk_bootstrap_0123456789")
    assert await Doorman(bureau.store).authenticate("fk_bootstrap_0123456789") is not None


async def test_a_big_conversation_that_packs_small_does_not_stop_the_others(bureau: Bureau) -> None:
    item = {"type": "function_call", "call_id": "a", "name": "press", "arguments": "{}"}
    reply = {"type": "message", "role": "assistant", "content": "Done."}
    await bureau.add([{"items": [item] * 20_000 + [reply]}], judges=("task_completion",))
    longest = 0.0

    async def heart() -> None:
        nonlocal longest
        while True:
            before = asyncio.get_running_loop().time()
            await asyncio.sleep(0.005)
            longest = max(longest, asyncio.get_running_loop().time() - before)

    beating = asyncio.create_task(heart())
    await bureau.examiner().judge((await bureau.due())[0])
    beating.cancel()
    assert longest < 1.0  # read on the loop, it would be several seconds


def test_the_key_of_the_nonces_does_not_show() -> None:
    assert "nonce_key" not in repr(Examiner(None, None, None, b"secret"))  # type: ignore[arg-type] # only shown
