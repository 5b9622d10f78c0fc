from typing import Any

import pytest

from app.transcripts.model import Transcript
from tests.transcripts.build import asked, call, codes, items, output, said


def facts(transcript: Transcript) -> list[tuple[str, int, int | None, str]]:
    return [(fact.code, fact.event, fact.call, fact.pointer) for fact in transcript.facts]


def test_reused_ids_pair_in_order_and_are_told() -> None:
    made = items(call("a"), output("1"), call("b"), output("2"))
    assert [(item.tool_name, item.output, item.output_event) for item in made.calls] == [("a", 1, 1), ("b", 2, 3)]
    assert facts(made) == [("duplicate_call_id", 2, 1, "/call_id")]


def test_an_output_before_its_call() -> None:
    made = items(output("1"), call("a"))
    assert made.calls[0].output == 1
    assert facts(made) == [("output_before_call", 0, 0, "/call_id")]


def test_an_output_of_no_recorded_call_is_a_fact_and_a_warning() -> None:
    made = items(call("a"), output("1"), output("2", "zzz"), output("3"))
    assert facts(made) == [("orphan_output", 2, None, "/call_id"), ("second_output", 3, 0, "/call_id")]
    assert codes(made) == {"orphan_output": 1}
    assert made.calls[0].output == 1


def test_a_call_that_is_never_answered_or_names_no_tool() -> None:
    made = items(call(""), call("b", None, id="fc_1"))
    assert facts(made) == [
        ("malformed_call", 0, 0, ""),
        ("call_without_output", 0, 0, "/call_id"),
        ("call_without_output", 1, 1, "/id"),
    ]
    assert [(item.tool_name, item.call_id) for item in made.calls] == [(None, "c1"), ("b", "fc_1")]


def test_a_number_is_an_id_like_its_digits() -> None:
    made = items(call(call_id=7), output("1", "7"))
    assert (made.calls[0].call_id, made.calls[0].output) == ("7", 1)


@pytest.mark.parametrize(
    ("arguments", "value", "error"),
    [
        ("", {}, None),
        (None, {}, None),
        ('{"a": 1, "a": 2}', {"a": 2}, None),
        ({"a": 1}, {"a": 1}, None),
        ("  ", None, "Expecting value: line 1 column 3 (char 2)"),
        ("null", None, "null, not an object"),
        ("[1]", None, "an array, not an object"),
        ([1], None, "an array, not an object"),
        ('"{}"', None, "a string, not an object"),
        ("true", None, "a boolean, not an object"),
        ("1.5", None, "a number, not an object"),
        ('{"a": NaN}', None, "NaN is not JSON"),
    ],
)
def test_arguments(arguments: Any, value: Any, error: str | None) -> None:
    made = items(call(arguments=arguments), output()).calls[0]
    assert (made.arguments, made.arguments_error) == (value, error)
    assert made.arguments_raw == (arguments if isinstance(arguments, str) else None)
    assert made.arguments_pointer == "/arguments"


def test_arguments_that_are_missing_count_as_none_given() -> None:
    bare = {"type": "function_call", "call_id": "c1", "name": "now"}
    made = items(bare, output(), call(arguments=""), output())
    assert [item.arguments for item in made.calls] == [{}, {}]
    assert made.calls[0].arguments_pointer == ""
    assert codes(made) == {"empty_arguments": 2}


def test_what_was_repeated_or_replaced_inside_strings_is_noted() -> None:
    made = items(call(arguments='{"a": 1, "a": "\\u0000"}'), output('{"b": 1, "b": "\\ud800"}'))
    assert codes(made) == {"repeated_key": 2, "replaced_characters": 2}
    assert (made.calls[0].arguments, made.calls[0].output) == ({"a": "\ufffd"}, {"b": "\ufffd"})


@pytest.mark.parametrize(
    ("entries", "batches"),
    [
        ([call("a", "1"), call("b", "2"), output("", "1"), output("", "2"), call("c", "3")], [0, 0, 1]),
        ([call("a", "1"), said("Hold on"), call("b", "2"), output("", "1")], [0, 0]),
        ([call("a", "1"), output("", "9"), call("b", "2")], [0, 1]),
        ([asked("a"), call("a", "1"), asked("and?"), call("b", "2")], [0, 1]),
        ([{"type": "web_search_call", "id": "w"}, call("a", "1")], [0, 1]),
        ([{"type": "program", "call_id": "p"}, call("a", "1", caller={"type": "program", "caller_id": "p"})], [0, 1]),
    ],
)
def test_calls_issued_before_anything_came_back_are_a_batch(entries: list[dict[str, Any]], batches: list[int]) -> None:
    assert [item.batch for item in items(*entries).calls] == batches


REQUEST = {
    "type": "mcp_approval_request",
    "id": "r1",
    "server_label": "post",
    "name": "move",
    "arguments": '{"to": "Rome"}',
}
ANSWER = {"type": "mcp_approval_response", "approval_request_id": "r1", "approve": True}
EXECUTION = {
    "type": "mcp_call",
    "id": "m1",
    "server_label": "post",
    "name": "move",
    "arguments": '{"to": "Rome"}',
    "output": "done",
    "approval_request_id": "r1",
}


def test_an_approved_call_is_one_call() -> None:
    made = items(REQUEST, ANSWER, EXECUTION)
    assert [event.kind for event in made.events[:3]] == ["call", "output", "output"]
    (item,) = made.calls
    assert (item.event, item.output_event, item.kind, item.plumbing) == (0, 2, "mcp", False)
    assert (item.tool_name, item.server_label, item.arguments, item.output) == ("move", "post", {"to": "Rome"}, "done")
    assert made.has_tool_calls
    assert made.facts == ()


def test_two_requests_with_one_id_are_executed_in_order() -> None:
    made = items(REQUEST, ANSWER, REQUEST, ANSWER, EXECUTION, EXECUTION | {"output": "again"})
    assert [(item.event, item.output) for item in made.calls] == [(0, "done"), (2, "again")]


def test_a_denied_call_came_to_nothing_and_has_not_failed() -> None:
    made = items(REQUEST, ANSWER | {"approve": False, "reason": "too far"})
    (item,) = made.calls
    assert (item.outcome, item.plumbing, item.output_available, item.error) == ("denied", True, False, None)
    assert made.events[1].text == "denied: too far"
    assert not made.has_tool_calls


def test_a_request_that_nobody_answered_is_pending() -> None:
    made = items(REQUEST)
    assert (made.calls[0].outcome, made.calls[0].kind, made.facts) == ("no_output", "approval", ())


def test_an_execution_without_its_request_stands_for_itself() -> None:
    made = items(EXECUTION, REQUEST)
    assert [(item.event, item.kind) for item in made.calls] == [(0, "mcp"), (1, "approval")]
