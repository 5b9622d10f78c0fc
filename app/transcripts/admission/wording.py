"""How a violation speaks of what a client sent: by type, clipped and escaped, with the likely intention."""

import difflib
import json
from collections.abc import Iterable

_LONGEST_QUOTE = 40
_LONGEST_MISSPELLING = 64
_CLOSE = 0.6


def quoted(text: str) -> str:
    """Return foreign text as a short JSON string without anything that a terminal or a log would act on."""
    clipped = text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 1] + "…"
    shown = json.dumps(clipped, ensure_ascii=False)
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in shown)


def kind(raw: bytes) -> str:
    """Return what a JSON text holds, with its article."""
    return _KINDS.get(raw[:1], "a number")


_KINDS = {b"{": "an object", b"[": "an array", b'"': "a string", b"t": "a boolean", b"f": "a boolean", b"n": "null"}


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return '; did you mean "…"?' when a known word is close, else nothing."""
    if len(word) > _LONGEST_MISSPELLING:
        return ""
    close = difflib.get_close_matches(word.lower(), list(known), 1, _CLOSE)
    return f'; did you mean "{close[0]}"?' if close else ""
