"""Did the user get what they asked for? What code settles, and what a model's answer comes to."""

from collections.abc import Sequence
from typing import Any

import pytest

from app.judges.contract import Case
from app.judges.output.task_completion import TASK_COMPLETION
from app.llm.endpoint import ChatEndpoint
from app.llm.judge_model import OpenAIJudgeModel
from tests.judges.scripted import case_of, decided, finding, says
from tests.stub_model import StubModel


def chat(*replies: str) -> Case:
    messages = []
    for reply in replies:
        messages += [{"role": "user", "content": "Cancel order B7."}, {"role": "assistant", "content": reply}]
    return case_of({"messages": messages})


def items(*last: dict[str, Any], reply: Sequence[str] = ("",)) -> Case:
    said = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": text} for text in reply],
    }
    return case_of({"items": [{"type": "message", "role": "user", "content": "Cancel order B7."}, said, *last]})


CALL = {"type": "function_call", "call_id": "c", "name": "cancel", "arguments": "{}"}
IMAGE = {"type": "image_generation_call", "id": "i", "status": "completed", "result": "aGk="}


def test_it_is_about_the_whole_conversation() -> None:
    assert [subject.key for subject in TASK_COMPLETION.subjects(chat("Done.", "Done again."))] == ["conversation"]


@pytest.mark.parametrize(
    "reply", [":", "...", " \n", "-", "**", "Thought process:", "Solution", "FINAL ANSWER:", "\u200b", "'\"!?"]
)
async def test_a_reply_that_says_nothing_fails_without_a_model(reply: str) -> None:
    model = says("5")
    case = chat(reply)
    decision = await decided(TASK_COMPLETION, case, model)
    assert (decision.passed, decision.score, decision.label, decision.method) == (False, 1, "1", "deterministic")
    assert model.prompts == []
    (found,) = decision.findings
    assert (found.code, found.severity, found.event, found.turn) == ("empty_reply", "high", 1, 0)
    assert [(place.event, place.quote, place.role) for place in found.evidence] == [(1, reply, "context")]
    assert (await decided(TASK_COMPLETION, case, None)).passed is False


@pytest.mark.parametrize("case", [items(), items(reply=()), items(reply=(".", " "))])
async def test_an_empty_item_says_nothing_either(case: Case) -> None:
    decision = await decided(TASK_COMPLETION, case, None)
    assert [found.code for found in decision.findings] == ["empty_reply"]


@pytest.mark.parametrize(
    "case",
    [
        chat("Done."),
        chat("7"),
        chat("\U0001f44d"),
        chat("好"),
        chat(":", "It is cancelled."),
        items(CALL),
        items(IMAGE),
        items({"type": "message", "role": "user", "content": "Thanks!"}, reply=("Done.",)),
        items(reply=("", "Done.")),
    ],
)
async def test_everything_else_is_a_question_for_the_model(case: Case) -> None:
    model = says("5")
    assert (await decided(TASK_COMPLETION, case, model)).passed is True
    assert len(model.prompts) == 1
    assert (await decided(TASK_COMPLETION, case, None)).reason_code == "no_judge_model"


@pytest.mark.parametrize(
    ("label", "passed", "code", "severity"),
    [
        ("1", False, "request_not_fulfilled", "high"),
        ("2", False, "request_partly_fulfilled", "medium"),
        ("3", True, "minor_gap", "info"),
        ("4", True, "minor_gap", "info"),
    ],
)
async def test_the_level_gives_score_code_and_severity(label: str, passed: bool, code: str, severity: str) -> None:
    decision = await decided(TASK_COMPLETION, chat("I will look into it."), says(label, finding(1, "look into it")))
    assert (decision.passed, decision.score) == (passed, int(label))
    assert [(found.code, found.severity) for found in decision.findings] == [(code, severity)]
    assert TASK_COMPLETION.severities[code] == severity
    assert (TASK_COMPLETION.threshold is not None and int(label) >= TASK_COMPLETION.threshold) == passed


async def test_full_marks_leave_nothing_to_remark() -> None:
    decision = await decided(TASK_COMPLETION, chat("Done."), says("5"))
    assert (decision.passed, decision.score, decision.findings) == (True, 5, ())


@pytest.mark.parametrize(
    ("behaviour", "status", "reason"),
    [
        ("pass", "scored", None),
        ("fail", "scored", None),
        ("abstain", "not_scored", "judge_abstained"),
        ("unanchored", "not_scored", "evidence_unverifiable"),
        ("wrong_event", "not_scored", "evidence_unverifiable"),
    ],
)
async def test_over_http(behaviour: str, status: str, reason: str | None) -> None:
    async with StubModel() as stub:
        stub.script(behaviour)
        endpoint = ChatEndpoint(base_url=stub.base_url, api_key="k")
        case = chat("I will look into it.")
        decision = await decided(TASK_COMPLETION, case, OpenAIJudgeModel(endpoint, "stub"))
        await endpoint.aclose()
    assert (decision.status, decision.reason_code) == (status, reason)
    assert (decision.model, decision.usage.requests) == ("stub", 1)
    assert decision.passed == {"pass": True, "fail": False}.get(behaviour)
