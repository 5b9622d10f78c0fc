import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.transcripts.inner_json import decode

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_reads_any_json_that_can_be_stored(value: object) -> None:
    text = json.dumps(value).replace("\\u0000", "")
    assert decode(text).value == json.loads(text)
    assert decode(text).error is None


@given(st.text())
def test_never_raises(text: str) -> None:
    decoded = decode(text)
    assert decoded.error is None or decoded.value is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "NaN",
        "[-Infinity]",
        '{"a": 1,}',
        "{'a': 1}",
        "1" * 4301,
        "[" * 201 + "]" * 201,
        "[" * 100_000,
        "\ufeff{}",
        '"\n"',
    ],
)
def test_what_is_not_json_is_a_value_with_a_reason(text: str) -> None:
    decoded = decode(text)
    assert decoded.error
    assert len(decoded.error) <= 200


def test_two_hundred_levels_are_the_limit() -> None:
    assert decode("[" * 200 + "]" * 200).error is None
    assert decode('{"a":' * 200 + "1" + "}" * 200).error is None
    assert decode('[{"b":[]},' + '{"a":' * 200 + "1" + "}" * 200 + "]").error == "nested deeper than 200"
    assert decode("[" + "[]," * 500 + "[]]").error is None


def test_a_number_beyond_a_double_stays_a_number_that_can_be_written() -> None:
    assert decode("[1e400, -1e400, 79.90]").value == [sys.float_info.max, -sys.float_info.max, 79.9]
    json.dumps(decode("1e400").value, allow_nan=False)


def test_the_last_of_a_repeated_key_counts_and_is_reported() -> None:
    decoded = decode('{"a": 1, "b": {"c": 1, "c": 2}, "a": 3}')
    assert decoded.value == {"a": 3, "b": {"c": 2}}
    assert sorted(decoded.repeated_keys) == ["a", "c"]


def test_nul_and_lone_surrogates_are_shown() -> None:
    decoded = decode('{"a\\u0000": "\\ud83d!\\ud83d\\ude00"}')
    assert decoded.value == {"a\ufffd": "\ufffd!😀"}
    assert decoded.replaced == 2
