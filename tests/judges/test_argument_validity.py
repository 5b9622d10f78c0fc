import json
from collections.abc import Sequence
from typing import Any

import pytest

from app.findings.model import Decision
from app.judges.contract import Bench, SchemaCheck
from app.judges.tools.argument_validity import ARGUMENT_VALIDITY
from app.transcripts.model import Transcript
from tests.judges.recordings import call, decide, output, recorded, tool, user

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "sku": {"type": "string"},
        "count": {"type": "integer", "minimum": 1},
        "size": {"enum": ["S", "M", "L"]},
        "by": {"type": "string", "format": "date"},
        "lines": {"type": "array", "items": {"type": "object", "properties": {"note": {"type": "string"}}}},
    },
    "required": ["sku"],
    "additionalProperties": False,
}


def _recorded(arguments: Any, schema: Any = SCHEMA) -> Transcript:
    return recorded(user(), call("order", arguments), output(), tools=[tool(), tool("order", schema)])


async def _only(transcript: Transcript, bench: Bench | None = None) -> Decision:
    (decision,) = await decide(ARGUMENT_VALIDITY, transcript, bench)
    return decision


@pytest.mark.parametrize(
    ("arguments", "code", "quote", "schema_words"),
    [
        ('{"sku": "A1", "count": "2"}', "wrong_argument_type", '"2"', "integer"),
        ('{"sku": "A1", "count": 0}', "constraint_violation", "0", "1"),
        ('{"sku": "A1", "size": "XL"}', "enum_violation", '"XL"', '["S", "M", "L"]'),
        ('{"sku": "A1", "by": "soon"}', "format_violation", '"soon"', "date"),
        ('{"sku": "A1", "colour": {"r": 1}}', "unexpected_argument", '"colour": {"r": 1}', "false"),
        ('{"sku": null}', "wrong_argument_type", "null", "string"),
        ('{"sku": "x", "sku": 7}', "wrong_argument_type", "7", "string"),
        ('{ "lines": [{}, {"note": [1]}],\n "sku": "\\u0041" }', "wrong_argument_type", "[1]", "string"),
    ],
)
async def test_a_violation_is_cited_in_the_agents_words_and_the_schemas(
    bench: Bench, arguments: str, code: str, quote: str, schema_words: str
) -> None:
    decision = await _only(_recorded(arguments), bench)
    assert decision.passed is False
    (finding,) = decision.findings
    assert (finding.code, finding.event, finding.turn) == (code, 1, 0)
    value, schema = finding.evidence
    assert (value.source, value.event, value.pointer, value.role) == ("items", 1, "/arguments", "violation")
    assert (value.quote, schema.quote) == (quote, schema_words)
    assert (schema.source, schema.event, schema.role) == ("tools", 1, "support")


async def test_what_is_missing_is_cited_where_it_should_be(bench: Bench) -> None:
    nested = {"properties": {"to": {"type": "object", "required": ["zip", "city"]}}, "required": ["to"]}
    (finding,) = (await _only(_recorded('{"to": {"zip": "1"}}', nested), bench)).findings
    assert finding.code == "missing_required_argument"
    where, required = finding.evidence
    assert (where.quote, where.role) == ('{"zip": "1"}', "context")
    assert (required.quote, required.pointer) == ("city", "/parameters/properties/to/required/1")
    assert "'city'" in finding.description
    assert "/to" in finding.description


@pytest.mark.parametrize(("arguments", "quote"), [("", "order"), (None, "null")])
async def test_empty_arguments_count_as_an_empty_object(bench: Bench, arguments: str | None, quote: str) -> None:
    (finding,) = (await _only(_recorded(arguments), bench)).findings
    assert finding.code == "missing_required_argument"
    assert finding.evidence[0].quote == quote
    assert (await _only(_recorded(arguments, {"type": "object"}), bench)).passed is True


async def test_arguments_recorded_as_an_object_are_cited_by_pointer(bench: Bench) -> None:
    transcript = recorded(
        {"type": "function_call", "call_id": "c1", "name": "order", "arguments": {"sku": "A", "count": 0.5}},
        tools=[tool("order", SCHEMA)],
    )
    found = (await _only(transcript, bench)).findings
    assert {finding.code for finding in found} == {"wrong_argument_type", "constraint_violation"}
    assert {finding.evidence[0].pointer for finding in found} == {"/arguments/count"}
    assert {finding.evidence[0].quote for finding in found} == {"0.5"}


async def test_each_violation_is_one_finding_and_a_list_of_the_same_is_one(bench: Bench) -> None:
    lines = [{"note": number} for number in range(30)]
    decision = await _only(_recorded({"lines": lines, "size": 3, "x": 1, "y": 2}), bench)
    assert sorted(finding.code for finding in decision.findings) == [
        "enum_violation",
        "missing_required_argument",
        "unexpected_argument",
        "unexpected_argument",
        "wrong_argument_type",
    ]
    (typed,) = [finding for finding in decision.findings if finding.code == "wrong_argument_type"]
    assert "29 other places" in typed.description
    assert decision.rationale.startswith("5 violations")


@pytest.mark.parametrize("arguments", ["{'sku': 'A1'}", "[1]", "null", '"{}"', "7", '{"sku": NaN}', "```json\n{}\n```"])
async def test_what_is_no_json_object_fails_without_any_schema(arguments: str) -> None:
    for tools in (None, [tool("order", SCHEMA)]):
        decision = await _only(recorded(call("order", arguments), tools=tools))
        (finding,) = decision.findings
        assert finding.code == "args_unparsable"
        assert finding.evidence[0].quote == arguments


async def test_satisfied_arguments_pass_with_the_facts(bench: Bench) -> None:
    decision = await _only(_recorded('{"sku": "A1", "count": 2}'), bench)
    assert decision.passed is True
    assert decision.findings == ()
    assert decision.rationale.startswith("1 of 1 required argument of order present; the 2 arguments given")


@pytest.mark.parametrize(
    ("tools", "schema", "reason"),
    [
        (None, None, "no_tool_catalogue"),
        ([], None, "no_tool_catalogue"),
        ([tool("other", SCHEMA)], None, "unknown_tool"),
        ([tool("order")], None, "no_schema"),
        ([tool("order", {})], None, "empty_schema"),
        ([tool("order", {"type": "dict"})], None, "schema_unusable"),
        ([tool("order", {"$ref": "http://127.0.0.1:1/schema"})], None, "schema_unusable"),
        ([tool("order", [1, 2])], None, "schema_unusable"),
        ([tool("order", {"description": "x" * (256 * 1024)})], None, "schema_too_large"),
        ([tool("order", {"allOf": [{"description": "é" * 1024}] * 130})], None, "schema_too_large"),
    ],
)
async def test_without_a_yardstick_nothing_is_scored(
    bench: Bench, tools: list[dict[str, Any]] | None, schema: None, reason: str
) -> None:
    decision = await _only(recorded(call("order", '{"sku": 1}'), tools=tools), bench)
    assert (decision.status, decision.reason_code) == ("not_scored", reason)
    assert decision.rationale


async def test_a_schema_that_runs_out_of_time_is_not_held_against_the_agent() -> None:
    class Slow:
        async def check(self, jobs: Sequence[tuple[str, str]]) -> list[SchemaCheck]:
            return [SchemaCheck(unusable="it takes too long", unusable_code="schema_timeout")] * len(jobs)

    decision = await _only(_recorded('{"sku": 1}'), Bench(Slow()))
    assert (decision.status, decision.reason_code) == ("not_scored", "schema_timeout")


async def test_tools_without_a_schema_by_nature_are_not_asked_about() -> None:
    transcript = recorded(
        {"type": "custom_tool_call", "call_id": "a", "name": "run_sql", "input": "select {"},
        {"type": "web_search_call", "id": "w", "status": "completed", "action": {"type": "search", "query": "x"}},
        {"type": "local_shell_call", "call_id": "b", "action": {"type": "exec", "command": ["ls"]}},
        tools=[{"type": "custom", "name": "run_sql"}, {"type": "web_search"}],
    )
    decisions = await decide(ARGUMENT_VALIDITY, transcript)
    assert [(decision.status, decision.reason_code) for decision in decisions] == [
        ("not_applicable", "free_text_tool"),
        ("not_applicable", "builtin_tool"),
        ("not_applicable", "builtin_tool"),
    ]


async def test_discovered_tools_are_checked_and_cited_where_they_were_found(bench: Bench) -> None:
    listed = {
        "type": "mcp_list_tools",
        "id": "l",
        "server_label": "shop",
        "tools": [{"name": "order", "input_schema": SCHEMA}],
    }
    made = {"type": "mcp_call", "id": "m", "server_label": "shop", "name": "order", "arguments": '{"sku": 1}'}
    (finding,) = (await _only(recorded(listed, made | {"output": "ok"}), bench)).findings
    schema = finding.evidence[1]
    assert (schema.source, schema.event) == ("items", 0)
    assert schema.pointer == "/tools/0/input_schema/properties/sku/type"


async def test_every_call_is_decided_about_itself(bench: Bench) -> None:
    items = [item for n in range(60) for item in (call("order", {"sku": n if n % 2 else str(n)}), output())]
    decisions = await decide(ARGUMENT_VALIDITY, recorded(*items, tools=[tool("order", SCHEMA)]), bench)
    assert [decision.passed for decision in decisions] == [n % 2 == 0 for n in range(60)]


async def test_quotes_stay_short_however_long_the_arguments(bench: Bench) -> None:
    long = json.dumps({"sku": ["x" * 5000], "y" * 5000: 1, "count": 1})
    decision = await _only(_recorded(long), bench)
    assert len(decision.findings) == 2
    assert all(len(place.quote) <= 600 for finding in decision.findings for place in finding.evidence)
    huge = json.dumps({"count": 0, "sku": "x" * 2_000_000})
    (finding,) = (await _only(_recorded(huge), bench)).findings
    assert len(finding.evidence[0].quote) <= 600


async def test_foreign_words_are_shown_escaped_and_short(bench: Bench) -> None:
    name = "order\u202e" + "n" * 500
    arguments = '{"\\u0000\\ud800": 1, "sku": "A", "lines": [{"note": 1}]}'
    schema = {"properties": {"lines": SCHEMA["properties"]["lines"]}, "additionalProperties": False}
    decision = await _only(recorded(call(name, arguments), tools=[tool(name, schema)]), bench)
    assert len(decision.findings) == 3
    for text in (decision.rationale, *(finding.description for finding in decision.findings)):
        assert text.isprintable()
        assert len(text) < 1000
