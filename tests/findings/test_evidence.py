import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.findings.evidence import EvidenceError, cite, locate, whole
from app.findings.model import Evidence
from app.transcripts.model import Transcript
from app.transcripts.parsing import parse
from app.transcripts.text import sanitise

RAW = r"""
{ "items": [
    {"type": "message", "role": "user", "content": "Refund 79.90 € to\u00a0my “old” card, please."},
    {"type": "function_call", "call_id": "c1", "name": "refund",
     "arguments": "{\"amount\": 79.90, \"why\": \"lost \\\"twice\\\"\"}"},
    {"type": "function_call_output", "call_id": "c1",
     "output": {"amount": 79.90, "ok": true, "note": "sent\nby mail", "a/b~c": [1, 2.50]}},
    {"type": "function_call", "call_id": "c2", "name": "tell", "arguments": {"to": "Ann\u0000", "to": "Bob"}},
    {"type": "odd", "deep": [{"said": "nothing to see"}], "number": 1e400},
    {"type": "message", "role": "assistant",
     "content": [{"type": "output_text", "text": "I refunded "}, {"type": "output_text", "text": "80.10 €."}]},
    {"type": "message", "role": "assistant", "content": []}
  ],
  "tools": [{"type": "function", "name": "refund", "parameters": {"minimum": 0.10}}],
  "id": "conversation"
}
"""


@pytest.fixture(scope="module")
def transcript() -> Transcript:
    return parse(RAW.encode())


def true(raw: str, evidence: Evidence) -> bool:
    """Cut the evidence once more from the recording, with nothing but json.loads and slices."""
    raw = sanitise(raw.encode())[0]
    value = json.loads(raw)
    if evidence.event is not None:
        value = value[evidence.source][evidence.event]
    for token in evidence.pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        value = value[int(key)] if isinstance(value, list) else value[key]
    if isinstance(value, str):
        return bool(value[evidence.start : evidence.end] == evidence.quote)
    return (
        (evidence.start, evidence.end) == (None, None) and json.loads(evidence.quote) == value and evidence.quote in raw
    )


@pytest.mark.parametrize(
    ("place", "quote"),
    [
        (("items", 0, "/content", 7, 12), "79.90"),
        (("items", 1, "/name"), "refund"),
        (("items", 1, "/arguments", 11, 16), "79.90"),
        (("items", 2, "/output/amount"), "79.90"),
        (("items", 2, "/output/ok"), "true"),
        (("items", 2, "/output/note", 0, 4), "sent"),
        (("items", 2, "/output/a~1b~0c"), "[1, 2.50]"),
        (("items", 2, "/output/a~1b~0c/1"), "2.50"),
        (("items", 3, "/arguments/to"), "Bob"),
        (("items", 4, "/number"), "1e400"),
        (("items", 6, ""), '{"type": "message", "role": "assistant", "content": []}'),
        (("tools", 0, "/parameters/minimum"), "0.10"),
        (("document", None, "/tools/0/name"), "refund"),
        (("document", None, "/tools/0/parameters"), '{"minimum": 0.10}'),
    ],
)
def test_cites_what_stands_there(transcript: Transcript, place: tuple[Any, ...], quote: str) -> None:
    evidence = cite(transcript, *place)
    assert (evidence.quote, evidence.role) == (quote, "violation")
    assert true(RAW, evidence)


@pytest.mark.parametrize(
    "place",
    [
        ("items", 7, ""),
        ("items", -1, ""),
        ("items", None, ""),
        ("messages", 0, ""),
        ("document", 0, ""),
        ("items", 0, "content"),
        ("items", 0, "/content/0"),
        ("items", 0, "/Content"),
        ("items", 2, "/output/a~1b~0c/01"),
        ("items", 2, "/output/a~1b~0c/2"),
        ("items", 2, "/output/a~1b~0c/-"),
        ("items", 0, "/content", 3, 2),
        ("items", 0, "/content", -3, None),
        ("items", 0, "/content", 0, 1000),
        ("items", 2, "/output", 0, 3),
    ],
)
def test_a_place_that_does_not_exist_is_an_error(transcript: Transcript, place: tuple[Any, ...]) -> None:
    with pytest.raises(EvidenceError):
        cite(transcript, *place)


@pytest.mark.parametrize(
    ("event", "quote", "pointer", "found"),
    [
        (0, "79.90", "/content", "79.90"),
        (0, 'my "old" card', "/content", "my “old” card"),
        (0, "to my", "/content", "to\u00a0my"),
        (1, "refund", "/name", "refund"),
        (1, '"amount": 79.90', "/arguments", '"amount": 79.90'),
        (1, 'lost "twice"', "/arguments", 'lost \\"twice\\"'),
        (1, '{\\"amount\\": 79.90', "/arguments", '{"amount": 79.90'),
        (1, 'refund({"amount": 79.90, "why"', "/arguments", '{"amount": 79.90, "why"'),
        (1, "c1", "/call_id", "c1"),
        (2, "sent\\nby mail", "/output/note", "sent\nby mail"),
        (2, "79.90", "/output/amount", "79.90"),
        (2, '"amount": 79.90, "ok": true', "/output", None),
        (2, "1, 2.50", "/output/a~1b~0c", "[1, 2.50]"),
        (3, "Bob", "/arguments/to", "Bob"),
        (3, "Ann", "/arguments", None),
        (3, 'tell({"to"', "/arguments", None),
        (4, "nothing to see", "/deep/0/said", "nothing to see"),
        (5, "80.10 €", "/content/1/text", "80.10 €"),
        (5, "I refunded 80.10 €.", "/content/0/text", "I refunded "),
    ],
)
def test_finds_what_a_model_quoted(
    transcript: Transcript, event: int, quote: str, pointer: str, found: str | None
) -> None:
    evidence = locate(transcript, event, quote, "context")
    assert evidence is not None
    assert (evidence.event, evidence.pointer, evidence.role) == (event, pointer, "context")
    assert found is None or evidence.quote == found
    assert true(RAW, evidence)


@pytest.mark.parametrize(
    ("event", "quote"),
    [
        (0, "80.10"),
        (0, ""),
        (0, "“”"),
        (0, "..."),
        (1, "sent"),
        (5, "I refunded 79.90"),
        (7, "refund"),
        (-1, "refund"),
        (6, "Bob"),
    ],
)
def test_what_is_not_there_is_not_found(transcript: Transcript, event: int, quote: str) -> None:
    assert locate(transcript, event, quote) is None


@pytest.mark.parametrize(
    ("event", "pointer", "quote"),
    [
        (0, "/content", None),
        (1, "/name", "refund"),
        (2, "/output", None),
        (4, "/type", "odd"),
        (5, "/content/0/text", "I refunded "),
        (6, "/content", "[]"),
    ],
)
def test_an_event_as_such(transcript: Transcript, event: int, pointer: str, quote: str | None) -> None:
    evidence = whole(transcript, event)
    assert (evidence.pointer, evidence.role) == (pointer, "context")
    assert quote is None or evidence.quote == quote
    assert true(RAW, evidence)


def test_a_transcript_made_by_hand_needs_no_starts(transcript: Transcript) -> None:
    bare = Transcript("items", "items", transcript.events, (), (), (), raw=transcript.raw, document=transcript.document)
    assert cite(bare, "items", 2, "/output/amount").quote == "79.90"
    with pytest.raises(EvidenceError):
        cite(
            Transcript("items", "items", (), (), (), (), raw="{}", document=transcript.document),
            "items",
            2,
            "/output/amount",
        )


WORDS = st.lists(
    st.sampled_from(["parcel", "79.90", "Köln", "“so”", 'a "b"', "c\\d", "tab\t", "line\n", "\u0000", "é", "a/b", "~"]),
    max_size=4,
).map(" ".join)
VALUES = st.recursive(
    WORDS | st.integers(0, 99) | st.sampled_from([79.9, 2.5, None, True]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(VALUES, st.data())
def test_every_evidence_can_be_cut_again_from_the_recording(value: Any, data: st.DataObject) -> None:
    indent = data.draw(st.sampled_from([None, 1]))
    encoded = json.dumps(value, indent=indent)
    items = [
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": encoded}, {"type": "output_text", "text": "end"}],
        },
        {"type": "function_call", "call_id": "1", "name": "f", "arguments": value},
        {"type": "function_call_output", "call_id": "1", "output": encoded},
        {"type": "odd", "value": value},
    ]
    raw = json.dumps({"items": items}, indent=indent, ensure_ascii=data.draw(st.booleans()))
    made = parse(raw.encode())
    event = data.draw(st.integers(0, 3))
    entry = json.dumps(items[event], indent=indent, ensure_ascii=data.draw(st.booleans()))
    source = data.draw(st.sampled_from([entry, made.events[event].text]))
    low = data.draw(st.integers(0, len(source)))
    quote = source[low : data.draw(st.integers(low, min(len(source), low + 60)))]
    evidence = locate(made, event, quote)
    if evidence is not None:
        assert true(raw, evidence)
    elif quote in made.events[event].text and made.events[event].kind != "unknown":
        assert not any(character.isalnum() for character in quote)
    assert true(raw, whole(made, event))
