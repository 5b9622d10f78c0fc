import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.transcripts import pointer
from app.transcripts.recording import NotAdmittedError, read
from app.transcripts.verbatim import enclosing, find
from tests.transcripts.test_inner_json import JSON

SPACES = st.sampled_from(["", " ", "\n", "\t \r\n"])


@st.composite
def spelt(draw: st.DrawFn, value: Any) -> str:
    """Write a value with blanks wherever JSON allows them."""
    if isinstance(value, list):
        inside = ",".join(draw(SPACES) + draw(spelt(member)) + draw(SPACES) for member in value)
        return f"[{inside or draw(SPACES)}]"
    if isinstance(value, dict):
        members = (
            (json.dumps(key, ensure_ascii=draw(st.booleans())), draw(spelt(member))) for key, member in value.items()
        )
        inside = ",".join(
            f"{draw(SPACES)}{key}{draw(SPACES)}:{draw(SPACES)}{text}{draw(SPACES)}" for key, text in members
        )
        return f"{{{inside or draw(SPACES)}}}"
    return json.dumps(value)


def places(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, value
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield from places(member, (*path, str(key)))


@given(st.data(), JSON)
def test_every_place_is_found_and_spelt_as_recorded(data: st.DataObject, value: Any) -> None:
    raw = data.draw(SPACES) + data.draw(spelt(value)) + data.draw(SPACES)
    start = len(raw) - len(raw.lstrip(" \t\r\n"))
    for path, expected in places(value):
        span = find(raw, start, path)
        assert span is not None
        assert json.loads(raw[slice(*span)]) == expected
        assert raw[slice(*span)].strip(" \t\r\n") == raw[slice(*span)]
    assert find(raw, start, ("no such", "place")) is None


@given(st.data(), JSON)
def test_the_smallest_value_around_a_piece_of_text_is_found(data: st.DataObject, value: Any) -> None:
    raw = data.draw(spelt(value))
    low = data.draw(st.integers(0, len(raw) - 1))
    high = data.draw(st.integers(low + 1, len(raw)))
    spans = {path: find(raw, 0, path) for path, _ in places(value)}
    around = [path for path, span in spans.items() if span and span[0] <= low and high <= span[1]]
    assert enclosing(raw, 0, low, high) == max(around, key=len)


@given(st.data(), st.lists(st.dictionaries(st.text(), JSON, max_size=3), max_size=4))
def test_a_recording_is_read_as_the_standard_decoder_reads_it(data: st.DataObject, entries: list[Any]) -> None:
    document: dict[str, Any] = {"id": 1, "items": entries, "": {"items": []}, "tools": entries[:1]}
    raw = data.draw(SPACES) + data.draw(spelt(document)) + data.draw(SPACES)
    recording = read(raw)
    assert recording.document == json.loads(raw)
    for name in ("items", "tools"):
        for start, entry in zip(recording.starts[name], document[name], strict=True):
            assert json.JSONDecoder().raw_decode(raw, start)[0] == entry


def test_the_last_of_a_repeated_key_is_found() -> None:
    raw = '{"items": [1], "a": {"b": 1, "b": 2.50}, "items": [7, {"x": [0], "x": [1, 2]}]}'
    recording = read(raw)
    assert recording.document["items"] == [7, {"x": [1, 2]}]
    assert raw[recording.starts["items"][1] :].startswith('{"x"')
    assert sorted(recording.repeated_keys) == ["b", "items", "x"]
    assert find(raw, 0, ("a", "b")) == (raw.index("2.50"), raw.index("2.50") + 4)
    span = find(raw, 0, ("items", "1", "x", "1"))
    assert span == (raw.rindex("2"), raw.rindex("2") + 1)


def test_a_list_that_another_value_replaces_has_no_starts() -> None:
    assert "items" not in read('{"items": [1], "items": 2}').starts


def test_depth_costs_no_time_squared() -> None:
    raw = "[" * 190 + '"x",' + ",".join(["[1]"] * 50_000) + "]" * 190
    assert find(raw, 0, ["0"] * 190) == (190, 193)


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "[]",
        "1",
        "{",
        '{"a"}',
        '{"a": }',
        '{"a": 1,}',
        '{"a": 1} x',
        '{"items": [1}',
        '{"items": [1,]}',
        '{"items": [1 2]}',
        '{"a": NaN}',
        "{1: 2}",
        '{"a": 1]',
        '{"a": ' + "[" * 100_000,
        '{"a": ' + "1" * 5000 + "}",
    ],
)
def test_what_is_no_json_object_is_not_admitted(raw: str) -> None:
    with pytest.raises(NotAdmittedError):
        read(raw)


@given(st.lists(st.text()))
def test_pointers_lead_back_to_their_tokens(tokens: list[str]) -> None:
    assert pointer.split(pointer.build(tokens)) == tuple(tokens)


@pytest.mark.parametrize(
    ("token", "index"), [("0", 0), ("17", 17), ("01", None), ("-1", None), ("", None), ("٣", None), ("9" * 30, None)]
)
def test_only_plain_numbers_are_indices(token: str, index: int | None) -> None:
    assert pointer.position(token) == index


def test_a_pointer_begins_with_a_slash() -> None:
    with pytest.raises(ValueError, match="not a JSON pointer"):
        pointer.split("items/0")
