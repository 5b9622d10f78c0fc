"""Two limits that the compiled decoder does not know: how deep a text nests and how long its integers are.

Both have a bound that is nearly free and clears nearly every text; only what fails it is looked at exactly. The exact
look is linear with a small factor for every text, hostile ones too: it works on whole runs of brackets, never on
single characters in Python.
"""

import re

LONGEST_INTEGER = 4300
"""Digits; what Python converts at most, and far beyond what any database keeps."""

_NOT_STRUCTURE = bytes(set(range(256)) - set(b'[]{}"'))
_AS_SQUARE = bytes.maketrans(b"{}", b"[]")
_WINDOW_BYTES = 1 << 20
_RUN = re.compile(rb"\[++|\]++")
_OPENING = ord("[")
_WIDE = 0.75
"""While a layer of leaves is at least a quarter of all brackets, taking it off whole is the cheapest step."""

_STRIDE = 268
_SAMPLED_RUN = re.compile(rb"[0-9]{%d}" % ((LONGEST_INTEGER + 1) // _STRIDE))
# Only from the beginning of a run: else every digit of runs that are just short enough would start a search.
_LONG_RUN = re.compile(rb"(?<![0-9])[0-9]{%d}" % (LONGEST_INTEGER + 1))
_LONG_INTEGER = re.compile(
    rb'"(?:[^"\\]++|\\.|)*+"|(?<![0-9.eE])(?<![eE][+-])([0-9]{%d,}+)(?![.eE])' % (LONGEST_INTEGER + 1), re.DOTALL
)


def deeper_than(text: bytes, limit: int) -> bool:
    """Return whether arrays and objects in a valid JSON text, or in the beginning of one, nest deeper than ``limit``.

    A flat array is 1 deep.
    """
    if len(text) <= limit or text.count(b"[") + text.count(b"{") <= limit:
        return False
    brackets = _brackets(text)
    brackets += b"]" * (2 * brackets.count(b"[") - len(brackets))
    while len(brackets) > 2 * limit:
        if limit == 0:
            return True
        inner = brackets.replace(b"[]", b"")
        limit -= 1
        if len(inner) > _WIDE * len(brackets):
            return _deepest(inner) > limit
        brackets = inner
    return False


def may_have_long_integer(text: bytes) -> bool:
    """Return False when no integer of the text can be too long, after a look at one byte in 268."""
    return _SAMPLED_RUN.search(text[::_STRIDE]) is not None


def long_integer(text: bytes) -> tuple[int, int] | None:
    """Return start and end of the first integer of a valid JSON text with more than 4,300 digits."""
    if len(text) <= LONGEST_INTEGER or _LONG_RUN.search(text) is None:
        return None
    for match in _LONG_INTEGER.finditer(text):
        if match[1] is not None:
            return match.span(1)
    return None


def _brackets(text: bytes) -> bytes:
    """Return the brackets that stand outside strings, all of them square."""
    # Escaped backslashes go first: what is left of a run of backslashes before a quote then tells its meaning.
    plain = text.replace(rb"\\", b"").replace(rb"\"", b"")
    marks = plain.translate(_AS_SQUARE, _NOT_STRUCTURE).replace(b'""', b"")
    outside, inside = [], 0
    for start in range(0, len(marks), _WINDOW_BYTES):
        parts = marks[start : start + _WINDOW_BYTES].split(b'"')
        outside.append(b"".join(parts[inside::2]))
        inside ^= (len(parts) - 1) & 1
    return b"".join(outside)


def _deepest(brackets: bytes) -> int:
    depth = deepest = 0
    for match in _RUN.finditer(brackets):
        start, end = match.span()
        if brackets[start] == _OPENING:
            depth += end - start
            deepest = max(deepest, depth)
        else:
            depth -= end - start
    return deepest
