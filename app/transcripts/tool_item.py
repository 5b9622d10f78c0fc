"""An item that is a call, an output or both: read, but not yet brought together with its other half."""

from dataclasses import dataclass

from app.transcripts.arguments import Arguments
from app.transcripts.entry import Entry
from app.transcripts.items import ItemType
from app.transcripts.outputs import Output


@dataclass(frozen=True, slots=True)
class ToolItem:
    """An item that is a call, an output or both, read but not yet paired."""

    entry: Entry
    spec: ItemType
    turn: int
    name: str | None
    arguments: Arguments | None = None
    output: Output | None = None

    @property
    def event(self) -> int:
        """Return the index of the item's event."""
        return self.entry.index

    def label(self, *keys: str) -> tuple[str, str] | tuple[None, None]:
        """Return the first of ``keys`` that holds an id, and that id as a string; numbers count as their digits."""
        for key in keys:
            value = self.entry.item.get(key)
            if isinstance(value, int) and not isinstance(value, bool):
                return key, str(value)
            if isinstance(value, str) and value:
                return key, value
        return None, None

    @property
    def id_pointer(self) -> str:
        """Return where the id stands that pairs this item; the item itself where there is none."""
        key, _ = self.label(*(self.spec.answers if self.spec.role == "output" else ("call_id", "id")))
        return self.entry.pointer(*([] if key is None else [key]))

    @property
    def parent_call_id(self) -> str | None:
        """Return the id of the program that issued this call, if one did."""
        caller = self.entry.item.get("caller")
        caller_id = caller.get("caller_id") if isinstance(caller, dict) else None
        return caller_id if isinstance(caller_id, str) else None
