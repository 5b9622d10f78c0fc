"""Whether a body is JSON at all, and where it stops being so.

The compiled decoder is strict about grammar and says at which byte it stumbled; from that byte the line, the column
and the likely cause are found without parsing again, so that a broken body costs no more than a sound one. What it
does not look at are the bytes inside strings, so UTF-8 is checked first, in windows: decoding 30 MB at once could
take 120 MB.
"""

import codecs
import re
from dataclasses import dataclass

import msgspec

from app.transcripts.admission.nesting import deeper_than
from app.transcripts.admission.wording import quoted
from app.transcripts.text import sanitise

MAX_DEPTH = 200
"""Levels of arrays and objects in a body; the body is the first."""

_BOM = codecs.BOM_UTF8
_WIDE = re.compile(rb"\xff\xfe|\xfe\xff|\x00|[^\x00]\x00")
_WINDOW_BYTES = 1 << 20
_CONTINUATION = bytes(range(0x80, 0xC0))
_AT_BYTE = re.compile(r"(?:JSON is malformed: )?(.*) \(byte (\d+)\)")
_NOT_FINITE = re.compile(rb"-?(?:NaN|Infinity)\b")
_BRACKET = re.compile(rb'"(?:[^"\\]++|\\.|)*+"|([\[{])|[\]}]', re.DOTALL)
_UNSTORABLE = (rb"\u0000", rb"\ud", rb"\uD")
_LONGEST_ESCAPE = 6


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a body cannot be read. ``line`` and ``column`` count from 1, columns in characters."""

    code: str
    message: str
    line: int
    column: int


def without_mark(body: bytes) -> bytes:
    """Return a body without its one leading UTF-8 byte order mark, if it has it."""
    return body.removeprefix(_BOM)


def encoding_fault(body: bytes) -> Fault | None:
    """Return why a body is not UTF-8, or None."""
    if _WIDE.match(body):
        return Fault("encoding_invalid", "the body looks like UTF-16 or UTF-32; send it as UTF-8", 1, 1)
    decoder = codecs.getincrementaldecoder("utf-8")()
    view = memoryview(body)
    for start in range(0, len(body), _WINDOW_BYTES):
        held = len(decoder.getstate()[0])
        try:
            decoder.decode(view[start : start + _WINDOW_BYTES], start + _WINDOW_BYTES >= len(body))
        except UnicodeDecodeError as error:
            at = start - held + error.start
            line, column = _place(body, at)
            return Fault("encoding_invalid", f"byte {at} (0x{body[at]:02x}) is not UTF-8", line, column)
    return None


def fault(body: bytes, error: msgspec.DecodeError | RecursionError) -> Fault:
    """Return what is wrong with a body that the decoder refused."""
    if not body.strip():
        return Fault("json_invalid", 'the body is empty; send {"conversations": [...]}', 1, 1)
    match = _AT_BYTE.fullmatch(str(error))
    at = len(body) if match is None else int(match[2])
    # How deep the decoder goes before it raises RecursionError depends on Python, and so does whether it got to ``at``.
    if isinstance(error, RecursionError) or deeper_than(body[:at], MAX_DEPTH):
        at, code, message = _too_deep_at(body), "nesting_too_deep", f"arrays and objects nest deeper than {MAX_DEPTH}"
    elif match is None:
        code, message = "json_invalid", "the JSON text ends too early"
    else:
        code, message = _cause(body, at, match[1])
    line, column = _place(body, at)
    return Fault(code, message, line, column)


def replace_unstorable(body: bytes) -> bytes:
    """Return a body with its NUL and lone surrogate escapes replaced; every other byte stays where it is."""
    found = [at for at in map(body.find, _UNSTORABLE) if at >= 0]
    if not found:
        return body
    start, end = min(found), max(map(body.rfind, _UNSTORABLE)) + _LONGEST_ESCAPE
    while start and body.startswith(b"\\", start - 1):  # how many stand before it decides whether it is an escape
        start -= 1
    while end < len(body) and body[end] in _CONTINUATION:  # not in the middle of a character
        end += 1
    text, replaced = sanitise(body[start:end])
    return body[:start] + text.encode() + body[end:] if replaced else body


def _cause(body: bytes, at: int, said: str) -> tuple[str, str]:
    literal = _NOT_FINITE.match(body, at) or _NOT_FINITE.match(body, max(at - 1, 0))
    if literal is not None:
        return "number_not_finite", f"{literal[0].decode()} is not JSON"
    if body.startswith(b"'", at):
        return "json_invalid", "strings and keys stand in double quotes"
    if said == "invalid character":
        found = body[at : at + 4].decode(errors="replace")[:1]
        return "json_invalid", f"unexpected {quoted(found)}"
    return "json_invalid", said


def _place(body: bytes, at: int) -> tuple[int, int]:
    begin = body.rfind(b"\n", 0, at) + 1
    return body.count(b"\n", 0, at) + 1, len(body[begin:at].translate(None, _CONTINUATION)) + 1


def _too_deep_at(body: bytes) -> int:
    depth = 0
    for match in _BRACKET.finditer(body):
        if match[1] is not None:
            depth += 1
            if depth > MAX_DEPTH:
                return match.start()
        elif not body.startswith(b'"', match.start()):
            depth -= 1
    return 0
