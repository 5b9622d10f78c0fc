"""Where members stand in the bytes of a JSON text, repeated ones included.

The compiled decoder says what a value is but not where, and of a repeated key it only tells the last. Whoever has to
cut something out of the bytes, or to say what was sent twice, walks them here. The text has been found valid before,
so little is checked again, and no pattern gives anything back, so that no text makes them slow. A walk that gets stuck
nevertheless raises: taken for the end it would pass over what has to be cut out.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from app.transcripts.text import sanitise

# A group repeated with *+ ends in an empty alternative: without it, Python before 3.11.5 goes on from the middle of the
# repetition that failed last. An atomic group would do as well, but remembers every repetition: up to 1 GB for 10 MB.
_STRING = rb'"(?:[^"\\]++|\\.|)*+"'
_KEY = re.compile(rb"[\s,]*+(" + _STRING + rb")\s*+:\s*+", re.DOTALL)
_ELEMENT = re.compile(rb"[\s,]*+(?=[^\s\]])")
_BRACKETS = re.compile(
    rb'(?:[^"\[\]{}]++|' + _STRING + rb'|\[[^"\[\]{}]*+\]|\{[^"\[\]{}]*+\}|)*+([\[{]++|[\]}]++)',
    re.DOTALL,
)
"""The next run of brackets of one kind; containers of nothing but plain values are passed on the way."""
_SCALAR = re.compile(_STRING + rb"|[^\s,\[\]{}\"]++", re.DOTALL)
_END = re.compile(rb"\s*+[\]}]")

_OPENING = b"[{"
_CLOSED = b'[{"'


def members(text: bytes, at: int, known: Mapping[str, Any] | None = None) -> Iterator[tuple[str, int, int]]:
    """Yield key, start and end of every value of the object that begins at ``at``, in order.

    Args:
        text: valid JSON.
        at: where an object's brace stands.
        known: values by key, as bytes-like; where one stands in the text again it is stepped over at once.

    Raises:
        ValueError: the object does not end where its members do.
    """
    known = known or {}
    at += 1
    while (match := _KEY.match(text, at)) is not None:
        start = match.end()
        token = match[1]
        key = token[1:-1].decode() if b"\\" not in token else json.loads(sanitise(token)[0])
        value = known.get(key)
        # Only what ends with its own bracket or quote is the whole value when it is the beginning of one.
        whole = value is not None and text[start] in _CLOSED and text.startswith(value, start)
        at = start + len(value) if value is not None and whole else end_of_value(text, start)
        yield key, start, at
    _check_end(text, at)


def elements(text: bytes, at: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of every element of the array that begins at ``at``, in order.

    Raises:
        ValueError: the array does not end where its elements do.
    """
    at += 1
    while (match := _ELEMENT.match(text, at)) is not None:
        at = end_of_value(text, match.end())
        yield match.end(), at
    _check_end(text, at)


def end_of_value(text: bytes, at: int) -> int:
    """Return where the value that begins at ``at`` ends.

    Raises:
        ValueError: it does not.
    """
    begin = at
    if text[at] not in _OPENING:
        match = _SCALAR.match(text, at)
        if match is None:
            raise ValueError(f"no value at byte {at}")
        return match.end()
    depth = 1
    at += 1
    while (match := _BRACKETS.match(text, at)) is not None:
        start, at = match.span(1)
        if text[start] in _OPENING:
            depth += at - start
        elif at - start < depth:
            depth -= at - start
        else:
            return start + depth
    raise ValueError(f"the value at byte {begin} does not end")


def _check_end(text: bytes, at: int) -> None:
    if _END.match(text, at) is None:
        raise ValueError(f"no bracket closes at byte {at}")
