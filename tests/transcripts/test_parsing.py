import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.findings.evidence import cite, locate, whole
from app.transcripts.items import ITEM_TYPES
from app.transcripts.model import Event, Transcript
from app.transcripts.notes import MAX_DISTINCT
from app.transcripts.parsing import FORMATS, parse
from app.transcripts.recording import NotAdmittedError
from tests.transcripts.build import REPLY, USER, call, codes, items

ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)
KEYS = [
    "call_id",
    "id",
    "name",
    "namespace",
    "arguments",
    "output",
    "outputs",
    "results",
    "result",
    "content",
    "summary",
    "status",
    "error",
    "action",
    "actions",
    "operation",
    "queries",
    "code",
    "tools",
    "server_label",
    "role",
    "phase",
    "caller",
    "approval_request_id",
    "approve",
    "reason",
    "provider_data",
    "input",
    "exit_code",
    "function",
    "parameters",
    "input_schema",
    "description",
    "outcome",
]
ODD = [
    "",
    "c1",
    7,
    "{}",
    '{"a": 1, "a": "\\u0000"}',
    "[1]",
    "Error: no",
    "incomplete",
    "failed",
    "assistant",
    "user",
    "commentary",
    True,
    False,
    {"type": "program", "caller_id": "c1"},
    {"type": "search", "sources": [{"url": "u"}, 3]},
    {"type": "web_search_call", "id": "c1"},
    [{"type": "output_text", "text": "a"}],
    [{"type": "input_text", "text": '{"error": 1}'}],
    [{"type": "logs", "logs": "x"}, {}],
    [{"stdout": "a", "outcome": {"type": "exit", "exit_code": 1}}],
    [{"stdout": 3, "outcome": {"type": "timeout"}}],
    [
        {"type": "function", "name": "f", "parameters": {}},
        {"type": "namespace", "name": "n", "tools": [{"name": "f"}, 1]},
        {},
        3,
    ],
    {"code": 3, "message": ["x"]},
    {"error": {"type": {}, "code": 9, "message": "x"}},
    {"isError": True, "content": [{"text": 1}]},
]
ITEM = st.builds(
    lambda type_, rest: rest | {"type": type_},
    st.sampled_from([*ITEM_TYPES, "odd"]),
    st.dictionaries(st.sampled_from(KEYS), st.sampled_from(ODD) | JSON, max_size=7),
)
TOOL = st.dictionaries(
    st.sampled_from(["type", *KEYS]), st.sampled_from(["function", "mcp", "namespace", *ODD]) | JSON, max_size=5
)


@settings(max_examples=150, deadline=None)
@given(st.lists(ITEM, max_size=6), st.lists(TOOL, max_size=3), st.integers(0, 6))
def test_nothing_that_is_admitted_makes_it_raise(entries: list[Any], tools: list[Any], place: int) -> None:
    reply = {"type": "message", "role": "assistant", "content": "x"}
    raw = json.dumps({"items": [*entries[:place], reply, *entries[place:]], "tools": tools}).encode()
    made = parse(raw)
    assert [event.index for event in made.events] == list(range(len(entries) + 1))
    sound(made)


def sound(made: Transcript) -> None:
    """Check what every judge relies on, whatever was recorded."""
    everything = repr((made.events, made.calls, made.catalogue, made.facts, made.warnings, made.turns))
    everything.encode()
    assert "\\x00" not in everything
    for event in made.events:
        quotable(made, event)
    for one in made.calls:
        cite(made, made.source, one.event, one.arguments_pointer)
        if one.output_event is not None:
            cite(made, made.source, one.output_event, one.output_pointer)
        json.dumps([one.arguments, one.output], allow_nan=False)
    for fact in made.facts:
        cite(made, made.source, fact.event, fact.pointer)
    for tool in made.catalogue:
        cite(made, tool.source, tool.event, tool.pointer if tool.parameters is None else tool.parameters_pointer)
    assert sorted(number for turn in made.turns for number in turn.calls) == list(range(len(made.calls)))
    assert len(made.warnings) <= MAX_DISTINCT + 1


def quotable(made: Transcript, event: Event) -> None:
    """Check that every piece of an event can be cited, and found by whoever quotes it."""
    place = whole(made, event.index)
    assert cite(made, made.source, event.index, place.pointer).quote == place.quote
    for segment in event.segments:
        assert cite(made, made.source, event.index, segment.pointer).quote == segment.text
        if any(character.isalnum() for character in segment.text):
            assert locate(made, event.index, segment.text) is not None


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant"]), ANY_TEXT.filter(bool), JSON), max_size=5))
def test_chat_messages(rows: list[tuple[str, str, Any]]) -> None:
    messages = [{"role": role, "content": text, "extra": extra} for role, text, extra in rows]
    made = parse(json.dumps({"messages": [*messages, {"role": "assistant", "content": "x"}]}).encode())
    assert [event.kind for event in made.events[:-1]] == [role for role, _, _ in rows]
    assert (made.format, made.source, made.calls, made.catalogue) == ("messages", "messages", (), ())
    sound(made)


def test_chat_tool_calls_and_tools_are_ignored_and_noted() -> None:
    told = {"role": "assistant", "content": "Done.", "tool_calls": [{"id": "1"}]}
    plain: dict[str, Any] = {"role": "assistant", "content": "Done.", "tool_calls": [], "function_call": None}
    made = parse(json.dumps({"messages": [told, told, plain], "tools": [{"type": "function", "name": "f"}]}).encode())
    assert codes(made) == {"chat_tool_calls_ignored": 2, "chat_tools_ignored": 1}
    assert made.warnings[0].pointer == "/messages/0"
    assert not made.has_tool_calls


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"messages": [], "items": []},
        {"items": []},
        {"items": {}},
        {"items": ["x"]},
        {"items": [{}]},
        {"items": [USER]},
        {"messages": []},
        {"items": [{"type": ""}, REPLY]},
        {"items": [{"type": None}, REPLY]},
        {"items": [REPLY], "tools": None},
        {"items": [REPLY], "tools": [1]},
        {"messages": [{"role": "user", "content": "a"}]},
        {"messages": [{"role": "system", "content": "a"}]},
        {"messages": [{"role": "assistant", "content": ""}]},
        {"messages": [{"role": "assistant", "content": ["a"]}]},
    ],
)
def test_what_the_door_refuses_is_not_parsed(document: Any) -> None:
    with pytest.raises(NotAdmittedError):
        parse(json.dumps(document).encode())


@pytest.mark.parametrize("raw", [b"", b"[]", b"\xff", b'{"items": ', '{"items": []}'.encode("utf-16")])
def test_what_is_no_json_is_not_parsed(raw: bytes) -> None:
    with pytest.raises(NotAdmittedError):
        parse(raw)


def test_oddities_of_the_text_are_replaced_and_counted() -> None:
    made = parse(
        b'\xef\xbb\xbf{"items": [{"type": "message", "role": "assistant", "content": "old", "content": '
        b'[{"type": "output_text", "text": "a\\u0000b\\ud83d"}]}], "n": 1e400}'
    )
    assert made.events[0].text == "a\ufffdb\ufffd"
    assert codes(made) == {"replaced_characters": 2, "repeated_key": 1}
    json.dumps(made.document, allow_nan=False)


def test_a_delta_of_an_earlier_response_is_incomplete() -> None:
    made = parse(json.dumps({"items": [REPLY], "previous_response_id": "resp_1"}).encode())
    assert made.context_incomplete
    assert codes(made) == {"context_incomplete": 1}


def test_a_million_different_oddities_end_as_a_short_list() -> None:
    made = items(*[{"type": f"odd_{number}"} for number in range(5000)], {"type": "odd_0"}, {"type": "odd" * 1000})
    assert len(made.warnings) == MAX_DISTINCT + 1
    assert made.warnings[0].count == 2
    assert made.warnings[-1].code == "more_warnings"
    assert sum(warning.count for warning in made.warnings) == 5002
    assert all(len(warning.message) < 300 for warning in made.warnings)


def test_two_hundred_levels_everywhere() -> None:
    deep: Any = "x"
    for _ in range(190):
        deep = [deep]
    text = json.dumps(deep)
    made = items(
        call(arguments=deep),
        {"type": "function_call_output", "call_id": "c1", "output": {"deep": deep}},
        call(arguments='{"deep": ' + text + "}"),
        {"type": "odd", "deep": deep},
        tools=[{"type": "odd", "deep": deep}],
    )
    sound(made)
    evidence = locate(made, 3, "x")
    assert evidence is not None
    assert evidence.pointer == "/deep" + "/0" * 190


def test_formats_are_told_apart_by_their_containers() -> None:
    assert len({format_.container for format_ in FORMATS}) == len({format_.name for format_ in FORMATS}) == len(FORMATS)
