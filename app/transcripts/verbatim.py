"""Evidence quotes a recording as it was written: a price recorded as 79.90 must not be shown as 79.9.

A decoded value has lost its spelling, so the JSON text is walked again to the place in question. What stands beside
the path is skipped by the C decoder; every character is looked at once, however deep the path leads. Where a key is
repeated the last one counts, as it does for whoever decodes the text.

The text is valid JSON: it has been decoded before.
"""

import json
import re
from collections.abc import Sequence

from app.transcripts.pointer import position
from app.transcripts.scan import first_member, next_member, skip_colon

Span = tuple[int, int]

_SKIPPER = json.JSONDecoder()
# The empty alternative is for Python before 3.11.5, which would go on from the middle of a repetition that failed.
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+|)*+"|[\[\]{},:]|[^\s"\[\]{},:]++', re.DOTALL)

_OPENING: dict[str, int | None] = {"[": 0, "{": None}
_CLOSING = ("]", "}")


def find(raw: str, start: int, tokens: Sequence[str]) -> Span | None:
    """Return where the value at ``tokens`` stands, inside the value that begins at ``start``.

    Args:
        raw: JSON text.
        start: where a value begins in it.
        tokens: unescaped pointer tokens; none at all name the value itself.

    Returns:
        Start and end of the value's text, or None when the path leads nowhere.
    """
    if not tokens:
        return start, _SKIPPER.raw_decode(raw, start)[1]
    return _search(raw, start, tokens, 0)[1] if raw[start] in "[{" else None


def _search(raw: str, at: int, tokens: Sequence[str], depth: int) -> tuple[int, Span | None]:
    """Return the end of the container at ``at``, and where the rest of the path leads inside it."""
    keyed, wanted, last = raw[at] == "{", tokens[depth], depth + 1 == len(tokens)
    closing = "}" if keyed else "]"
    index, wanted_index = 0, None if keyed else position(wanted)
    found: Span | None = None
    at, more = first_member(raw, at)
    while more:
        if keyed:
            key, at = _SKIPPER.raw_decode(raw, at)
            at, here = skip_colon(raw, at), key == wanted
        else:
            here = index == wanted_index
        begin = at
        if here and not last and raw[at] in "[{":
            at, found = _search(raw, at, tokens, depth + 1)
        else:
            at = _SKIPPER.raw_decode(raw, at)[1]
            if here:
                found = (begin, at) if last else None
        at, more = next_member(raw, at, closing)
        index += 1
    return at, found


def enclosing(raw: str, start: int, low: int, high: int) -> tuple[str, ...]:
    """Return the path of the smallest value that covers ``raw[low:high]``, from the value that begins at ``start``."""
    begins: list[int] = []
    path: list[str | int | None] = []  # a step per open container: its current index or key, None before a key
    for match in _TOKEN.finditer(raw, start):
        mark, begin = match[0], match.start()
        if mark in _OPENING:
            begins.append(begin)
            path.append(_OPENING[mark])
        elif mark == ",":
            path[-1] = path[-1] + 1 if isinstance(path[-1], int) else None
        elif path and path[-1] is None and mark[0] == '"':
            path[-1] = json.loads(mark)
        elif mark != ":":
            if mark in _CLOSING:
                path.pop()
                begin = begins.pop()
            if (begin <= low and high <= match.end()) or not path:
                break
    return tuple(str(step) for step in path)
