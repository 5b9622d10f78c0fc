"""The door lets in what can be judged, says of the rest what is wrong, and keeps credentials out of the store."""

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.transcripts.admission.door import LARGEST_METADATA, LONGEST_ID, Admission, admit
from app.transcripts.admission.nesting import LONGEST_INTEGER, deeper_than, long_integer, may_have_long_integer
from app.transcripts.admission.spans import elements, end_of_value, members
from app.transcripts.model import Violation

ASKED = {"role": "user", "content": "Where is parcel 7?"}
REPLY = {"role": "assistant", "content": "In Turin."}
ITEMS = [{"type": "message", **ASKED}, {"type": "message", **REPLY}]


def raw(value: Any) -> bytes:
    return json.dumps(value).encode()


def admitted(value: Any) -> Admission:
    admission = admit(value if isinstance(value, bytes) else raw(value))
    assert isinstance(admission, Admission), list(admission)
    return admission


def violations(value: Any) -> list[Violation]:
    broken = admit(raw(value))
    assert not isinstance(broken, Admission)
    return list(broken)


def told(value: Any) -> list[tuple[str, str, int]]:
    return [(each.code, each.pointer, each.count) for each in admitted(value).warnings]


def test_plain_conversations_come_in_without_a_word() -> None:
    assert admitted({"messages": [ASKED, REPLY]}) == Admission("messages")
    assert admitted({"items": ITEMS, "tools": [{"type": "web_search"}], "other": [[]]}) == Admission("items")


@pytest.mark.parametrize("role", ["system", "developer", "tool"])
def test_other_roles_are_sent_to_the_responses_format(role: str) -> None:
    (violation,) = violations({"messages": [{"role": role, "content": "x"}, REPLY]})
    assert violation.code == "role_not_allowed"
    assert "Responses format" in violation.message
    assert '"items"' in violation.message


def test_every_item_without_a_type_is_listed_with_what_to_add() -> None:
    entries = [ASKED, *ITEMS, REPLY, {"call_id": "c"}, {"type": None}]
    assert [(each.loc, each.message) for each in violations({"items": entries})] == [
        (("items", 0), 'items[0]: has role but no type; add "type": "message"'),
        (("items", 3), 'items[3]: has role but no type; add "type": "message"'),
        (("items", 4), "items[4]: type is missing; every item needs a non-empty string"),
        (("items", 5, "type"), "items[5].type must be a non-empty string, not null"),
    ]


@pytest.mark.parametrize(
    ("content", "code"),
    [(None, "wrong_type"), ([{"type": "text", "text": "x"}], "wrong_type"), ("", "empty"), (" ", None)],
)
def test_chat_content_is_a_string_that_is_not_empty(content: Any, code: str | None) -> None:
    conversation = {"messages": [{"role": "user", "content": content}, REPLY]}
    if code is None:
        admitted(conversation)
    else:
        assert [each.code for each in violations(conversation)] == [code]


def test_chat_messages_may_stand_beside_anything_called_tools() -> None:
    admitted({"messages": [REPLY], "tools": None})


def test_items_may_carry_any_role_and_content() -> None:
    entries = [*ITEMS, {"type": "other", "role": {"name": "x"}}, {"type": "message", "role": 5, "content": None}]
    assert told({"items": entries}) == [("missing_role", "/items/3", 1)]


def test_roles_that_are_not_read_are_told_with_their_number() -> None:
    critic = {"type": "message", "role": "critic"}
    entries = [critic, *ITEMS, {"type": "message"}, critic, {"type": "message", "role": "developer"}]
    assert told({"items": entries}) == [("unknown_role", "/items/0/role", 2), ("missing_role", "/items/3", 1)]


def test_chat_tool_calls_are_told_unless_there_are_none() -> None:
    call = {"id": "c", "function": {"name": "f", "arguments": "{}"}}
    messages = [REPLY | {"tool_calls": each} for each in (None, [], [call], [call, call])]
    assert told({"messages": messages}) == [("chat_tool_calls_ignored", "/messages/2/tool_calls", 2)]


def test_the_clients_own_id_and_metadata_are_kept_when_they_are_what_they_should_be() -> None:
    admission = admitted({"messages": [REPLY], "id": "c-1", "metadata": {"run": [1, {"a": None}]}})
    assert admission.client_id == "c-1"
    assert json.loads(admission.metadata or "") == {"run": [1, {"a": None}]}
    assert not admission.warnings
    assert not told({"messages": [REPLY], "id": None, "metadata": None})


@pytest.mark.parametrize(
    "odd",
    [
        {"id": 7, "metadata": []},
        {"id": "x" * (LONGEST_ID + 1), "metadata": {"x": "y" * LARGEST_METADATA}},
        {"id": ["x"], "metadata": "x"},
    ],
)
def test_an_odd_id_and_odd_metadata_are_ignored_and_told(odd: dict[str, Any]) -> None:
    admission = admitted({"messages": [REPLY], **odd})
    assert (admission.client_id, admission.metadata) == (None, None)
    assert [each.code for each in admission.warnings] == ["id_ignored", "metadata_ignored"]


@pytest.mark.parametrize(
    "conversation",
    [
        b'{"messages": 1, "messages": [{"role": null, "role": "assistant", "content": [], "content": "x"}]}',
        b'{"items": 1, "items": [{"type": 1, "type": "message", "role": 1, "role": "assistant"}]}',
        b'{"items": ' + raw(ITEMS) + b', "tools": 1, "tools": []}',
    ],
)
def test_of_repeated_keys_the_last_counts(conversation: bytes) -> None:
    admitted(conversation)


def redacted(value: Any) -> Any:
    admission = admitted(value)
    assert admission.redacted is not None
    return json.loads(admission.redacted)


MCP = {
    "type": "mcp",
    "server_label": "crm",
    "server_url": "https://crm.example/mcp",
    "authorization": "Bearer s3cret",
    "headers": {"X-Key": "s3cret", "X-Env": "s3cret", "Empty": ""},
}


def test_credentials_of_tool_entries_are_cut_out_and_nothing_else() -> None:
    schema = {"type": "object", "properties": {"headers": {"type": "object"}, "authorization": {"type": "string"}}}
    function = {"type": "function", "name": "send", "parameters": schema}
    conversation = {"items": ITEMS, "tools": [function, MCP], "note": {"authorization": "not a tool's"}}
    kept = redacted(conversation)
    assert kept["tools"][0] == function
    assert kept["note"] == conversation["note"]
    entry = MCP | {
        "authorization": "[redacted]",
        "headers": {"X-Key": "[redacted]", "X-Env": "[redacted]", "Empty": ""},
    }
    assert kept["tools"][1] == entry
    admission = admitted(conversation)
    assert admission.redactions == (
        "/tools/1/authorization",
        "/tools/1/headers/X-Key",
        "/tools/1/headers/X-Env",
    )
    assert [(each.code, each.count) for each in admission.warnings] == [("credentials_redacted", 3)]
    again = admit(admission.redacted or b"")
    assert isinstance(again, Admission)
    assert again.redacted is None


@pytest.mark.parametrize(
    "conversation",
    [
        {"items": [*ITEMS, {"type": "additional_tools", "tools": [MCP]}]},
        {"items": ITEMS, "tools": [{"type": "namespace", "tools": [MCP, {"type": "namespace", "tools": [MCP]}]}]},
        {"messages": [REPLY], "tools": [MCP]},
        {"items": ITEMS, "tools": [{"authorization": {"token": "s3cret"}, "headers": ["s3cret"]}]},
        {"items": ITEMS, "tools": [{"headers": {"a/b~c": {"deep": ["s3cret"]}}}]},
    ],
)
def test_credentials_are_found_wherever_tools_are_listed(conversation: Any) -> None:
    assert "s3cret" not in json.dumps(redacted(conversation))


@pytest.mark.parametrize(
    "tools",
    [
        rb'"tools":[{"\u0061uthorization":"s3cret"}]',
        rb'"tools":[{"authorization":"s3cret","authorization":"s3cret"}]',
        rb'"tools":[{"headers":{"k":"s3cret"},"headers":{}}]',
        rb'"tools":[{"authorization":"s3cret"}],"tools":[]',
        rb'"tools" : [ { "headers" : { "k\"}" : "s3cret\\" , "j":"s3cret\"" } } ]',
        b'"\\u0074ools":[{"h\\u0065aders":{"\\ud800":"s3cret"}}]',
    ],
)
def test_no_spelling_hides_a_credential(tools: bytes) -> None:
    came = b'{"items":' + raw(ITEMS) + b"," + tools + b"}"
    admission = admit(came.replace(b"\\ud800", b"\\ufffd"), received=came)
    assert isinstance(admission, Admission)
    assert admission.redacted is not None
    assert b"s3cret" not in admission.redacted
    assert json.loads(admission.redacted)
    assert all("\ud800" not in each for each in admission.redactions)


def test_very_many_credentials_are_named_by_their_list() -> None:
    tools = [{"headers": {str(each): "x" for each in range(40)}}] * 40
    admission = admitted({"items": ITEMS, "tools": tools})
    assert admission.redactions == ("/tools",)
    assert admission.warnings[0].count == 1600


words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), words),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(words, inner, max_size=4)),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None)
@given(values, st.sampled_from([None, 1]), st.booleans())
def test_spans_lead_to_the_values_they_name(value: Any, indent: int | None, as_ascii: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=as_ascii).encode()
    around = b" [" + text + b" , {}]"
    assert end_of_value(around, 2) == 2 + len(text)
    if isinstance(value, dict):
        assert {key: json.loads(text[low:high]) for key, low, high in members(text, 0)} == value
    if isinstance(value, list):
        assert [json.loads(text[low:high]) for low, high in elements(text, 0)] == value


def depth_of(value: Any) -> int:
    if not isinstance(value, list | dict):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(depth_of, inner), default=0)


@settings(max_examples=200, deadline=None)
@given(values, st.integers(0, 6))
def test_depth_is_what_a_walk_finds(value: Any, limit: int) -> None:
    assert deeper_than(json.dumps(value).encode(), limit) == (depth_of(value) > limit)


@settings(max_examples=200, deadline=None)
@given(values, st.integers(0, 6), st.data())
def test_the_beginning_of_a_text_is_as_deep_as_what_it_opens(value: Any, limit: int, data: st.DataObject) -> None:
    text = json.dumps(value, ensure_ascii=True).encode()
    beginning = text[: data.draw(st.integers(0, len(text)))]
    depth, deepest, inside, escaped = 0, 0, False, False
    for character in beginning.decode():
        if not escaped and character == '"':
            inside = not inside
        escaped = inside and not escaped and character == "\\"
        depth += not inside and character in "[{"
        depth -= not inside and character in "]}"
        deepest = max(deepest, depth)
    assert deeper_than(beginning, limit) == (deepest > limit)


@pytest.mark.parametrize("text", [b'{"a": "x', b'{"a": [1, {"b": 2}', b'{"a": 1 "tools', b'{"tools": }', b'{"a": "x"'])
def test_a_walk_that_gets_stuck_does_not_pass_for_one_that_is_done(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"at byte \d"):
        list(members(text, 0))
    with pytest.raises(ValueError, match=r"at byte \d"):
        list(elements(b"[" + text, 0))


@pytest.mark.parametrize(
    "text", ['"\\\\"', '"\\""', '"\\\\\\""', '"[[["', '"]]]"', '"\\\\[[["', '"\\"[[["', '""', '"é["']
)
def test_brackets_in_strings_do_not_nest(text: str) -> None:
    nested = ("[" * 9 + text + "]" * 9).encode()
    assert deeper_than(nested, 8)
    assert not deeper_than(nested, 9)


@pytest.mark.parametrize("before", ["", "-", "1.", "1.5e", "1e+", "1E-", '"'])
@pytest.mark.parametrize("after", ["", ".5", "e1", '"'])
@pytest.mark.parametrize("digits", [LONGEST_INTEGER, LONGEST_INTEGER + 1, 3 * LONGEST_INTEGER])
def test_only_integers_have_a_longest_length(before: str, after: str, digits: int) -> None:
    if ('"' in before) != ('"' in after) or ("." in before + after and "1" in before):
        return
    number = before + "1" * digits + after
    text = f'{{"pad": "x", "v": [{number}]}}'.encode()
    json_ok = before in {"", "-"} and after == "" and digits > LONGEST_INTEGER
    assert (long_integer(text) is not None) == json_ok
    assert not json_ok or may_have_long_integer(text)


def columns(depth: int, total: int) -> bytes:
    return b"[" + (b"[" * depth + b"]" * depth + b",") * (total // (2 * depth + 1)) + b"1]"


HOSTILE = {
    "columns": columns(150, 3_000_000),
    "empties": b"[" + b"[]," * 1_000_000 + b"1]",
    "strings": b"[" + b'"[",[],' * 400_000 + b"1]",
    "backslashes": b'["' + rb"\\" * 1_500_000 + b'"]',
    "spine": b"[" * 150 + b"[]," * 900_000 + b"1" + b"]" * 150,
    "quotes": b'["' + rb"\"[" * 1_000_000 + b'"]',
}


@pytest.mark.parametrize("shape", sorted(HOSTILE))
def test_hostile_shapes_are_measured_in_time_that_grows_with_their_length(shape: str) -> None:
    started = time.process_time()
    assert not deeper_than(HOSTILE[shape], 198)
    assert end_of_value(HOSTILE[shape], 0) == len(HOSTILE[shape])
    assert time.process_time() - started < 2.0


def test_the_first_violations_of_a_crowd_are_cheap() -> None:
    crowd = b'{"messages":[' + b"1," * 5_000_000 + b"1]}"
    started = time.process_time()
    broken = admit(crowd)
    assert not isinstance(broken, Admission)
    assert next(broken).loc == ("messages", 0)
    assert time.process_time() - started < 2.0
