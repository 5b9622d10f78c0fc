"""Tool entries of recorded requests carry the agent's credentials; a store of evidence must not become one of keys.

An MCP entry has ``authorization`` and ``headers``. Both are cut out of the bytes before anything is stored, wherever
an entry of a list called ``tools`` stands: in the conversation, in an item that lists tools, in a namespace. All other
bytes stay as they were received. A JSON Schema that merely describes a property of that name is left alone, because
schemas are not entries of such a list.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from app.transcripts import pointer
from app.transcripts.admission.spans import elements, members

PLACEHOLDER = b'"[redacted]"'

_MOST_POINTERS = 1000
_DEEPEST_NAMESPACE = 3
"""Namespaces do not nest; a chain of them is followed this far, so that no text is walked many times."""
_ESCAPED_LETTER = re.compile(rb"\\u00[4-7]")
_NOTHING = (b"null", b'""', PLACEHOLDER)


@dataclass(frozen=True, slots=True)
class Redacted:
    """What is left, and the pointers of the values that were replaced: of whole lists where there are too many."""

    kept: bytes = field(repr=False)
    pointers: tuple[str, ...]
    count: int


def may_have_credentials(text: bytes) -> bool:
    """Return False when no key of the text can be one of a credential."""
    return names_credentials(text) or _ESCAPED_LETTER.search(text) is not None


def names_credentials(text: bytes) -> bool:
    """Return False when no key of a text without escaped letters can be one of a credential."""
    return b'authorization"' in text or b'headers"' in text


def redact(received: bytes) -> Redacted | None:
    """Replace the credentials of every tool entry in a conversation; None when there are none.

    Args:
        received: a valid JSON object, as received.
    """
    kept: list[bytes] = []
    places: list[tuple[str | int, ...]] = []
    done = 0
    for place, start, end in _conversation(received):
        kept += (received[done:start], PLACEHOLDER)
        places.append(place)
        done = end
    if not places:
        return None
    kept.append(received[done:])
    shown = places if len(places) <= _MOST_POINTERS else [place[:1] for place in places]
    return Redacted(b"".join(kept), tuple(dict.fromkeys(map(pointer.build, shown))), len(places))


_Found = Iterator[tuple[tuple[str | int, ...], int, int]]


def _conversation(text: bytes) -> _Found:
    for key, start, _ in members(text, len(text) - len(text.lstrip())):
        if key == "tools":
            yield from _tools(text, start, ("tools",))
        elif key == "items" and text.startswith(b"[", start):
            for index, (at, _) in enumerate(elements(text, start)):
                yield from _tools_of(text, at, ("items", index))


def _tools_of(text: bytes, at: int, place: tuple[str | int, ...]) -> _Found:
    """Find the credentials in the lists called ``tools`` of an item or a namespace."""
    if text.startswith(b"{", at):
        for key, start, _ in members(text, at):
            if key == "tools":
                yield from _tools(text, start, (*place, "tools"))


def _tools(text: bytes, at: int, place: tuple[str | int, ...]) -> _Found:
    if text.startswith(b"[", at):
        for index, (start, _) in enumerate(elements(text, at)):
            if text.startswith(b"{", start):
                yield from _entry(text, start, (*place, index))


def _entry(text: bytes, at: int, place: tuple[str | int, ...]) -> _Found:
    for key, start, end in members(text, at):
        if key == "headers" and text.startswith(b"{", start):
            for name, low, high in members(text, start):
                if text[low:high] not in _NOTHING:
                    yield (*place, key, name), low, high
        elif key in ("authorization", "headers") and text[start:end] not in _NOTHING:
            yield (*place, key), start, end
        elif key == "tools" and place.count(key) < _DEEPEST_NAMESPACE:
            yield from _tools(text, start, (*place, key))
