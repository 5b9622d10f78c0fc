"""A value's span in the raw arguments spells that value, whatever stands around it."""

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.judges.tools.argument_places import argument_place, value_span
from app.judges.tools.places import LONGEST_QUOTE
from app.transcripts import pointer as pointers
from tests.judges.recordings import call, recorded

_KEYS = st.text(max_size=6) | st.sampled_from(["", "a", 'q"', "\\", "~1/", "a:b", '","', "\U0001f600"])
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=20,
)
_OBJECTS = st.dictionaries(_KEYS, _VALUES, min_size=1, max_size=5)


def _places(value: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    found = [(path, value)]
    if isinstance(value, dict):
        for key, member in value.items():
            found += _places(member, (*path, key))
    elif isinstance(value, list):
        for index, member in enumerate(value):
            found += _places(member, (*path, str(index)))
    return found


def _spell(value: Any, chance: random.Random) -> str:
    """Spell a value as untidily as JSON allows: spaces anywhere, escapes or not, keys repeated."""

    def space() -> str:
        return chance.choice(["", " ", "\n\t", "  \r\n "])

    if isinstance(value, dict):
        members = [(key, _spell(member, chance)) for key, member in value.items()]
        if members and chance.random() < 0.3:
            members.insert(0, (members[-1][0], '{"overridden": [1]}'))
        inside = ",".join(
            f"{space()}{json.dumps(key, ensure_ascii=chance.random() < 0.5)}{space()}:{space()}{text}{space()}"
            for key, text in members
        )
        return f"{{{inside or space()}}}"
    if isinstance(value, list):
        return f"[{','.join(space() + _spell(member, chance) + space() for member in value) or space()}]"
    return json.dumps(value, ensure_ascii=chance.random() < 0.5)


@given(_OBJECTS, st.integers(0, 1 << 32))
def test_every_value_is_found_where_it_is_spelt(value: dict[str, Any], seed: int) -> None:
    raw = f" {_spell(value, random.Random(seed))}\n"
    assert json.loads(raw) == value
    for path, expected in _places(value):
        span = value_span(raw, path)
        assert span is not None
        assert json.loads(raw[slice(*span)]) == expected


@given(_OBJECTS, st.integers(0, 1 << 32))
def test_a_member_is_cited_with_its_key(value: dict[str, Any], seed: int) -> None:
    transcript = recorded(call("order", _spell(value, random.Random(seed))))
    (made,) = transcript.calls
    assert made.arguments_raw is not None
    for key, expected in json.loads(made.arguments_raw).items():
        place = argument_place(transcript, made, pointers.build([key]), "violation", with_key=True)
        if len(place.quote) < LONGEST_QUOTE:
            assert json.loads(f"{{{place.quote}}}") == {key: expected}


@pytest.mark.parametrize(
    ("raw", "path"), [("{}", ["a"]), ("[1]", ["1"]), ("[1]", ["01"]), ("1", ["a"]), ("", []), ("{", ["a"])]
)
def test_where_nothing_is_there_is_no_span(raw: str, path: list[str]) -> None:
    assert value_span(raw, path) is None
