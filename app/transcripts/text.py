r"""JSON lets a recording say things that databases, HTTP clients and encoders cannot: NUL and half a character.

``\u0000`` is refused by PostgreSQL, a lone surrogate by everything that encodes UTF-8, and both turn up in real
traffic. They are replaced in the JSON *text*, before anything decodes it, so that no layer below has to think of
them, and one for one, so that offsets into the decoded strings stay those of the recording.
"""

import json
import re

REPLACEMENT = "\ufffd"

_HEX = "[0-9a-fA-F]"
_HIGH = rf"u[dD][89abAB]{_HEX}{{2}}"
_LOW = rf"u[dD][c-fC-F]{_HEX}{{2}}"
# An escape starts at the last backslash of an odd run. The run is taken whole, from its first backslash and without
# giving any back, so that a body of nothing but backslashes costs one look at each.
_ESCAPE = re.compile(rf"(?<!\\)(?P<run>\\++)(?:(?P<pair>{_HIGH}\\{_LOW})|u(?:0000|[dD][89a-fA-F]{_HEX}{{2}}))")
# The empty alternative is for Python before 3.11.5, which would go on from the middle of a repetition that failed.
_ESCAPES = re.compile(rf"(?<!\\)(?P<run>\\++)(?P<escapes>u{_HEX}{{4}}(?:\\u{_HEX}{{4}}|)*+)")
_FIRST_PRINTABLE = "\u00a0"
_ESCAPED_LENGTH = len(r"\u0000")
_REPLACEMENT_ESCAPE = r"\ufffd"


def sanitise(raw: bytes) -> tuple[str, int]:
    r"""Decode JSON text, with NUL and lone surrogate escapes replaced by the escape of U+FFFD.

    One leading byte order mark is dropped. Surrogate pairs stay, and so does ``\\u0000``, which is a backslash and
    five characters. Linear in the length of ``raw``; where there is nothing to replace it costs a decode and a search.

    Args:
        raw: JSON text as UTF-8. It need not be valid JSON.

    Returns:
        The text, and how many escapes were replaced.

    Raises:
        UnicodeDecodeError: ``raw`` is not UTF-8.
    """
    return replace_unstorable(raw.decode("utf-8-sig"))


def replace_unstorable(text: str) -> tuple[str, int]:
    """Do what ``sanitise`` does to JSON text that is decoded already."""
    if r"\u0000" not in text and r"\ud" not in text and r"\uD" not in text:
        return text, 0
    replaced = 0

    def replacement(match: re.Match[str]) -> str:
        nonlocal replaced
        found = match[0]
        escapes = len(match["run"]) % 2 == 1
        if not escapes and match["pair"] is None:
            return found
        if escapes and match["pair"] is not None:
            return found
        # Lone: either the whole match is one escape, or its first half is only text and the second half has no first.
        replaced += 1
        return found[:-_ESCAPED_LENGTH] + _REPLACEMENT_ESCAPE

    return _ESCAPE.sub(replacement, text), replaced


def without_escapes(text: str) -> str:
    r"""Return JSON text with ``\u`` escapes spelt as the characters they mean, for a reader.

    What has to stay escaped for the text to remain JSON, or to be seen, stays. The text holds no lone surrogates.
    """
    return _ESCAPES.sub(_meant, text) if r"\u" in text else text


def _meant(match: re.Match[str]) -> str:
    if len(match["run"]) % 2 == 0:
        return match[0]
    meant = json.loads(f'"\\{match["escapes"]}"')
    shown = (character if character >= _FIRST_PRINTABLE else f"\\u{ord(character):04x}" for character in meant)
    return match["run"][:-1] + "".join(shown)
