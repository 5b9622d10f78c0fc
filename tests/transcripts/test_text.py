import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.transcripts.text import sanitise, without_escapes

PIECES = [
    "\\",
    "\\\\",
    "\\u0000",
    "\\ud83d",
    "\\ude00",
    "\\uD83D\\uDE00",
    "u0000",
    "ud83d",
    "a",
    "\\n",
    '\\"',
    "\\u00e9",
    "é",
]


def by_hand(text: str) -> tuple[str, int]:
    """Do it one escape after the other, as a reader of RFC 8259 would."""
    out, at, count = "", 0, 0
    while at < len(text):
        step = 1 if text[at] != "\\" else 2
        try:
            code = int(text[at + 2 : at + 6], 16) if text[at : at + 2] == "\\u" and len(text) >= at + 6 else None
        except ValueError:
            code = None
        piece = text[at : at + (step if code is None else 6)]
        if code is not None and 0xD800 <= code < 0xDC00 and low_half(text[at + 6 : at + 12]):
            piece = text[at : at + 12]
        elif code == 0 or (code is not None and 0xD800 <= code < 0xE000):
            out, at, count = out + "\\ufffd", at + 6, count + 1
            continue
        out, at = out + piece, at + len(piece)
    return out, count


def low_half(text: str) -> bool:
    return re.fullmatch(r"\\u[dD][c-fC-F][0-9a-fA-F]{2}", text) is not None


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_replaces_what_a_reader_of_the_rfc_would_replace(text: str) -> None:
    assert sanitise(text.encode()) == by_hand(text)


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=30))
def test_strings_keep_their_length_and_lose_only_what_cannot_be_stored(text: str) -> None:
    cleaned, count = sanitise(json.dumps(text).encode())
    value = json.loads(cleaned)
    bad = [character for character in text if character == "\0" or "\ud800" <= character <= "\udfff"]
    assert count == len(bad)
    assert value == "".join("\ufffd" if character in bad else character for character in text)
    value.encode()


def test_one_byte_order_mark_is_dropped() -> None:
    assert sanitise(b"\xef\xbb\xbf[]") == ("[]", 0)
    assert sanitise(b"\xef\xbb\xbf\xef\xbb\xbf[]") == ("\ufeff[]", 0)


def test_other_encodings_are_refused() -> None:
    with pytest.raises(UnicodeDecodeError):
        sanitise("[]".encode("utf-16"))
    with pytest.raises(UnicodeDecodeError):
        sanitise(b'"\xed\xa0\x80"')


@pytest.mark.parametrize(
    "body", [b"\\" * 4_000_000 + b"u0000\\ud83d", b"\\\\" * 2_000_000 + b"x\\ud83d", b"\\ud83d" * 600_000]
)
def test_bodies_made_to_be_slow_are_not(body: bytes) -> None:
    began = time.process_time()
    sanitise(body)
    assert time.process_time() - began < 3


@given(st.text())
def test_escapes_are_spelt_out_and_the_text_stays_json(text: str) -> None:
    raw, _ = sanitise(json.dumps({text: [text]}).encode())
    shown = without_escapes(raw)
    assert json.loads(shown) == json.loads(raw)
    assert all(
        ord(character) < 0xA0 for character in json.loads('"' + "".join(re.findall(r"\\u[0-9a-f]{4}", shown)) + '"')
    )


def test_only_escapes_are_spelt_out() -> None:
    assert without_escapes(r'"\u4e2d\\u4e2d\\\u4e2d\ud83d\ude00\u0022\u0041"') == r'"中\\u4e2d\\中😀\u0022\u0041"'
