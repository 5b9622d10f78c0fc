"""Was it the right tool? Facts first, and a model that sees nothing of what came later."""

import json
import time
from typing import Any

import pytest

from app.judges.contract import Case
from app.judges.tools.tool_selection import TOOL_SELECTION
from app.llm.endpoint import ChatEndpoint
from app.llm.judge_model import OpenAIJudgeModel
from tests.judges.scripted import ScriptedModel, bench_with, case_of, decided, finding, says
from tests.judges.test_render import ATTACKS, recording
from tests.stub_model import StubModel

TOOLS = [
    {"type": "function", "name": "lookup_order", "description": "Finds an order. By its number.", "parameters": {}},
    {"type": "function", "name": "cancel_order", "description": "Cancels an order.", "parameters": {}},
]
USER = {"type": "message", "role": "user", "content": "What is the state of A1 and A2?"}
REPLY = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Both are shipped."}]}


def call(name: str | None, id_: str = "c", **rest: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": id_, "name": name, "arguments": '{"id": "A1"}', **rest}


def output(id_: str = "c") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": id_, "output": "shipped"}


def conversation(*items: dict[str, Any], tools: Any = TOOLS) -> Case:
    return case_of({"items": [USER, *items, REPLY], "tools": tools})


async def test_every_judged_call_is_a_subject() -> None:
    search = {"type": "tool_search_call", "call_id": "s", "arguments": "{}"}
    case = conversation(call("lookup_order", "a"), output("a"), search, call("lookup_order", "a"), output("a"))
    assert [subject.key for subject in TOOL_SELECTION.subjects(case)] == ["call:1", "call:4"]


async def test_a_tool_nobody_offered_is_a_fact() -> None:
    model = says("pass")
    decision = await decided(TOOL_SELECTION, conversation(call("refund_order"), output()), model)
    assert (decision.passed, decision.method, decision.label) == (False, "deterministic", "fail")
    (found,) = decision.findings
    assert (found.code, found.severity, found.event) == ("unknown_tool", "high", 1)
    assert [(place.pointer, place.quote, place.role) for place in found.evidence] == [
        ("/name", "refund_order", "violation")
    ]
    assert model.prompts == []


@pytest.mark.parametrize(
    "item",
    [
        {"type": "mcp_list_tools", "server_label": "crm", "tools": [{"name": "find", "input_schema": {}}]},
        {"type": "additional_tools", "tools": [{"type": "function", "name": "find"}]},
        {"type": "compaction", "encrypted_content": "x"},
    ],
    ids=lambda item: str(item["type"]),
)
async def test_where_the_list_may_be_incomplete_no_tool_is_unknown(item: dict[str, Any]) -> None:
    model = says("pass")
    decision = await decided(TOOL_SELECTION, conversation(item, call("refund_order"), output()), model)
    assert decision.passed is True
    assert len(model.prompts) == 1


async def test_a_hosted_tool_names_itself() -> None:
    search = {"type": "web_search_call", "id": "w", "status": "completed", "action": {"type": "search", "query": "A1"}}
    assert (await decided(TOOL_SELECTION, conversation(search), None)).reason_code == "no_judge_model"


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (conversation(call("lookup_order"), output(), tools=[]), "no_tool_catalogue"),
        (case_of({"items": [USER, call("lookup_order"), output(), REPLY]}), "no_tool_catalogue"),
        (conversation(call(None), output()), "nothing_checkable"),
    ],
)
async def test_what_cannot_be_judged_is_said(case: Case, reason: str) -> None:
    model = says("pass")
    decision = await decided(TOOL_SELECTION, case, model)
    assert (decision.status, decision.reason_code, model.prompts) == ("not_scored", reason, [])
    assert decision.rationale == TOOL_SELECTION.reasons[reason]


async def test_the_model_sees_what_came_before_and_the_calls_made_together() -> None:
    model = says("pass")
    case = conversation(
        call("lookup_order", "a"),
        output("a"),
        call("lookup_order", "b"),
        call("cancel_order", "c"),
        output("b"),
        output("c"),
    )
    subjects = TOOL_SELECTION.subjects(case)
    assert [(await TOOL_SELECTION.decide(case, subject, bench_with(model))).passed for subject in subjects] == [
        True
    ] * 3
    first, second, third = model.prompts
    assert "[e1 call]" not in first.transcript
    assert "lookup_order(): Finds an order." in first.transcript
    assert "By its number" not in first.transcript
    assert second.transcript == third.transcript
    assert "[e2 output lookup_order ok]" in second.transcript
    assert "[e3" not in second.transcript
    for prompt, event in ((second, "e3"), (third, "e4")):
        assert "[e3 call]" in prompt.question
        assert "[e4 call]" in prompt.question
        assert f"the call in event {event} alone" in prompt.question
        assert "[e5" not in prompt.question + prompt.transcript
        assert "shipped" not in prompt.question
    assert second.transcript.startswith(first.transcript.rsplit("\n", 1)[0])


@pytest.mark.parametrize(
    ("code", "severity"), [("wrong_tool", "high"), ("unjustified_action", "high"), ("needless_call", "low")]
)
async def test_faults_weigh_what_the_table_says(code: str, severity: str) -> None:
    case = conversation(call("cancel_order"), output())
    decision = await decided(TOOL_SELECTION, case, says("fail", finding(1, "cancel_order", code)))
    assert decision.passed is False
    assert [(found.code, found.severity) for found in decision.findings] == [(code, severity)]
    assert decision.coverage is not None
    assert (decision.coverage.events_seen, decision.coverage.events_total) == (1, 1)


async def test_the_model_cannot_claim_what_only_code_may() -> None:
    schema = says("pass")
    await decided(TOOL_SELECTION, conversation(call("cancel_order"), output()), schema)
    codes = schema.prompts[0].answer_schema["properties"]["findings"]["items"]["properties"]["code"]["enum"]
    assert "unknown_tool" not in codes
    assert set(codes) < set(TOOL_SELECTION.severities)


async def test_hindsight_is_no_evidence() -> None:
    case = conversation(call("cancel_order"), output())
    decision = await decided(TOOL_SELECTION, case, says("fail", finding(2, "shipped", "wrong_tool")))
    assert decision.reason_code == "evidence_unverifiable"


@pytest.mark.parametrize("attack", ATTACKS, ids=ascii)
async def test_no_attack_changes_what_is_asked(attack: str) -> None:
    model = says("pass")
    for text in (attack, "x"):
        await decided(TOOL_SELECTION, case_of(json.loads(recording(text))), model)
    attacked, plain = (margin(prompt.question) for prompt in model.prompts)
    assert attacked == plain


def margin(question: str) -> list[str]:
    """The lines that are ours, without the names that headers carry."""
    return [line.split("]")[0] for line in question.split("\n") if not line.startswith("  ")]


async def test_one_request_for_each_call_over_http() -> None:
    calls = [item for number in range(6) for item in (call("lookup_order", str(number)), output(str(number)))]
    case = conversation(*calls)
    async with StubModel() as stub:
        stub.script("fail", contains="event e3 alone")
        endpoint = ChatEndpoint(base_url=stub.base_url, api_key="k")
        bench = bench_with(OpenAIJudgeModel(endpoint, "stub"))
        decisions = [await TOOL_SELECTION.decide(case, subject, bench) for subject in TOOL_SELECTION.subjects(case)]
        await endpoint.aclose()
        assert stub.stats.requests == 6
    assert [decision.passed for decision in decisions] == [True, False, True, True, True, True]


async def test_many_calls_cost_no_quadratic_time() -> None:
    case = conversation(*(call("nobody_offered_this" if number % 2 else "lookup_order") for number in range(20_000)))
    started = time.process_time()
    subjects = TOOL_SELECTION.subjects(case)
    statuses = [(await TOOL_SELECTION.decide(case, subject, bench_with(None))).status for subject in subjects]
    assert statuses.count("scored") == statuses.count("not_scored") == 10_000
    assert time.process_time() - started < 4, "looking at every call for every call would take minutes"


async def test_a_huge_batch_is_shown_in_part() -> None:
    case = conversation(*(call("lookup_order", str(number)) for number in range(3000)))
    model: ScriptedModel = says("pass")
    await TOOL_SELECTION.decide(case, TOOL_SELECTION.subjects(case)[1500], bench_with(model))
    assert "[e1501 call" in model.prompts[0].question
    assert len(model.prompts[0].question) < 10_000
