"""A body's conversations as slices of it: as they are read, and as they were received.

The two differ only where escapes were replaced, in place, so a slice of the one is found in the other by counting.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from msgspec import Raw

from app.transcripts.admission.entries import slices
from app.transcripts.admission.spans import elements

_Slice: TypeAlias = Raw | bytes
_GAP = re.compile(rb"[\s,]*+")


class Conversations:
    """The elements of an array, each as (text, received); can be gone through again.

    Args:
        array: the array as it is read.
        start: where it stands in the body.
        body: the body as received, where escapes were replaced in it; None: it is read as received.
    """

    def __init__(self, array: Raw, start: int, body: bytes | None) -> None:
        self._array = array
        self._start = start
        self._body = body
        self._texts = slices(array)
        self._received: list[_Slice] | list[Raw] | None = self._texts
        if self._texts is not None and body is not None:
            self._received = list(_found_again(self._texts, body, start + 1))

    @property
    def received(self) -> Iterable[bytes]:
        """The conversations as they came."""
        return _Received(self)

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        if self._texts is None or self._received is None:
            yield from self._one_by_one()
            return
        for read, came in zip(self._texts, self._received, strict=True):
            text = bytes(read)
            yield text, text if came is read else bytes(came)

    def as_received(self) -> Iterator[bytes]:
        """Yield the conversations as they came."""
        if self._received is None:
            return (came for _, came in self)
        return map(bytes, self._received)

    def _one_by_one(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield what is too much to be held as a list."""
        text = bytes(self._array)
        for low, high in elements(text, 0):
            one = text[low:high]
            yield one, one if self._body is None else self._body[self._start + low : self._start + high]


@dataclass(frozen=True, slots=True)
class _Received:
    conversations: Conversations

    def __iter__(self) -> Iterator[bytes]:
        return self.conversations.as_received()


def _found_again(texts: Iterable[Raw], body: bytes, at: int) -> Iterator[_Slice]:
    """Yield each slice itself where the body has the same bytes, else what the body has."""
    gap = _GAP.match
    for text in texts:
        match = gap(body, at)
        start = at if match is None else match.end()
        at = start + len(text)
        yield text if body.startswith(text, start) else body[start:at]
