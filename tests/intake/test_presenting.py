"""Whatever was let in can be shown, as JSON that every client can read."""

import json
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings

from app.evaluation.reading import Reading, read
from app.intake.presenting import present
from app.intake.process_intake import INLINE_BYTES, ProcessIntake
from app.transcripts.model import Warning_
from tests import shared
from tests.evaluation.bodies import RULES, written
from tests.evaluation.strategies import conversation

USER = {"type": "message", "role": "user", "content": "Where is parcel 7?"}
REPLY = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "In Turin."}]}


def stored(raw: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(raw)


def strict(document: bytes) -> Any:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    value = json.loads(document.decode(), parse_constant=refuse)
    json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    return value


def shown(*items: dict[str, Any], **more: Any) -> Any:
    return strict(present(stored(json.dumps({"items": [*items], **more}).encode())))


def test_a_call_is_shown_whole() -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "find", "arguments": '{"number": 7}'}
    output = {"type": "function_call_output", "call_id": "c1", "output": '{"city": "Turin"}'}
    tool = {"type": "function", "name": "find", "parameters": {"type": "object"}}
    document = shown(USER, call, output, REPLY, tools=[tool])
    assert [(each["index"], each["kind"]) for each in document["events"]] == [
        (0, "user"),
        (1, "call"),
        (2, "output"),
        (3, "assistant"),
    ]
    assert document["events"][3]["text"] == "In Turin."
    assert document["calls"] == [
        {
            "event": 1,
            "output_event": 2,
            "call_id": "c1",
            "tool_name": "find",
            "kind": "function",
            "arguments": {"number": 7},
            "output": {"city": "Turin"},
            "output_available": True,
            "outcome": "ok",
            "error": None,
            "schema_checkable": True,
            "parent_call_id": None,
        }
    ]
    assert document["catalogue"] == [{"name": "find", "origin": "declared"}]
    assert document["warnings"] == []


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [("{'a': 1}", "{'a': 1}"), ('{"a": NaN}', '{"a": NaN}'), ("", {}), ('{"a": 1}', {"a": 1})],
)
def test_arguments_that_do_not_decode_are_shown_as_recorded(arguments: str, expected: Any) -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "find", "arguments": arguments}
    assert shown(USER, call, REPLY)["calls"][0]["arguments"] == expected


@pytest.mark.parametrize(
    "text",
    [
        '"\\ud800"',
        '"\\u0000"',
        '"{\\"a\\": \\"\\\\ud83d\\"}"',
        '"{\\"a\\": 1e400, \\"b\\": -1e400}"',
        "1e400",
        "9" * 4000,
        '"' + "[" * 190 + "]" * 190 + '"',
        '"' + "[" * 5000 + "]" * 5000 + '"',
    ],
)
def test_odd_values_are_shown_as_json_that_every_client_reads(text: str) -> None:
    raw = (
        '{"items":[{"type":"message","role":"user","content":"x"},'
        f'{{"type":"function_call","call_id":{text},"name":"f","arguments":{text}}},'
        f'{{"type":"function_call_output","call_id":{text},"output":{text}}},'
        '{"type":"message","role":"assistant","content":"x"}]}'
    )
    document = strict(present(stored(raw.encode())))
    assert len(document["events"]) == 4
    assert len(document["calls"]) == 1


@settings(max_examples=300, deadline=None)
@given(conversation)
def test_everything_that_comes_in_can_be_shown(each: Any) -> None:
    reading = read(b'{"conversations":[' + written(each).encode() + b"]}", RULES)
    if isinstance(reading, Reading):
        (raw,) = reading.received
        assert set(strict(present(stored(raw)))) == {"events", "calls", "catalogue", "warnings"}


async def test_long_conversations_are_shown_like_short_ones(tmp_path: Path) -> None:
    intake = ProcessIntake(in_flight_bytes=1, directory=tmp_path)
    try:
        raw = json.dumps({"items": [USER, REPLY | {"content": "è" * INLINE_BYTES}]}).encode()
        assert await intake.present(stored(raw)) == present(stored(raw))
        short = json.dumps({"items": [USER, REPLY]}).encode()
        assert await intake.present(stored(short)) == present(stored(short))
    finally:
        await intake.aclose()


@pytest.mark.shared
@pytest.mark.parametrize("name", ["oddities/oddities", "shapes/shapes", "pydantic-ai-cassettes/recorded-items"])
def test_recorded_conversations_can_be_shown(name: str) -> None:
    for line in shared.shared_path(f"corpus/{name}.jsonl").read_bytes().splitlines():
        if isinstance(read(b'{"conversations":[' + line + b"]}", RULES), Reading):
            strict(present(stored(line)))


def test_warnings_it_was_stored_with_are_among_those_shown_and_none_is_told_twice() -> None:
    raw = json.dumps({"messages": [{"role": "assistant", "content": "hi", "tool_calls": [{"id": "a"}]}]}).encode()
    again = Warning_(**strict(present(stored(raw)))["warnings"][0])
    redacted = Warning_("/tools/0", "credentials_redacted", "Redacted.", 2)
    shown = strict(present(stored(raw), [again, redacted]))["warnings"]
    assert [each["code"] for each in shown] == [again.code, "credentials_redacted"]
