"""One entry of a conversation as its readers see it: the decoded item, and the words behind each place in it."""

from collections.abc import Mapping
from dataclasses import dataclass

from app.transcripts import pointer
from app.transcripts.model import Json, Segment
from app.transcripts.verbatim import find


@dataclass(frozen=True, slots=True)
class Entry:
    """An item, and where it stands. ``base`` leads from the entry to the item when the item is wrapped in another."""

    item: Mapping[str, Json]
    index: int
    raw: str
    start: int
    base: tuple[str, ...] = ()

    def pointer(self, *tokens: str | int) -> str:
        """Return the pointer, inside the entry, of a place inside the item."""
        return pointer.build(self.base + tokens)

    def string(self, text: str, *tokens: str | int) -> Segment:
        """Return the segment of a string that stands at ``tokens``."""
        return Segment(self.pointer(*tokens), text)

    def verbatim(self, *tokens: str | int) -> Segment:
        """Return the segment of a value that is not a string, spelt as recorded."""
        span = find(self.raw, self.start, [str(token) for token in self.base + tokens])
        if span is None:
            raise LookupError(f"entry {self.index} has no {self.pointer(*tokens)}")
        return Segment(self.pointer(*tokens), self.raw[slice(*span)], is_string=False)

    def segment(self, value: Json, *tokens: str | int) -> Segment:
        """Return the segment of ``value``, which stands at ``tokens``."""
        return self.string(value, *tokens) if isinstance(value, str) else self.verbatim(*tokens)

    def named(self, key: str) -> str | None:
        """Return the non-empty string at ``key``, if that is what stands there."""
        value = self.item.get(key)
        return value if isinstance(value, str) and value else None
