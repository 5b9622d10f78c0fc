"""What the door decodes of a conversation: as little as its rules need, everything else stays text.

Two readers for each list of entries. The strict one is a single call of the compiled decoder and refuses whatever
breaks a rule. It also refuses what merely looks like it, such as ``{"role": null, "role": "user"}``, where the last
value counts; the lenient reader reads those.
"""

from collections.abc import Callable, Iterable
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from app.transcripts.admission.spans import elements

Optional: TypeAlias = Raw | UnsetType
MOST_ENTRIES = 4_000_000
"""More entries than that are never held at once; no list of 30 MB that is valid has as many."""
_SMALL_BYTES = 1 << 20


class Message(Struct, gc=False):
    """An entry of ``messages`` that breaks no rule."""

    role: Literal["user", "assistant"]
    content: Annotated[str, Meta(min_length=1)]
    tool_calls: Optional = UNSET


class Item(Struct, gc=False):
    """An entry of ``items`` that breaks no rule."""

    type: Annotated[str, Meta(min_length=1)]
    role: str | None = None


class Object(Struct, gc=False):
    """Any object at all."""


class Conversation(Struct, gc=False):
    """A conversation whose entries break no rule; it may still have no reply, both containers or none."""

    messages: list[Message] | UnsetType = UNSET
    items: list[Item] | UnsetType = UNSET
    tools: list[Object] | UnsetType = UNSET
    id: Optional = UNSET
    metadata: Optional = UNSET
    expectations: Optional = UNSET


class _LooseConversation(Struct, gc=False):
    messages: Optional = UNSET
    items: Optional = UNSET
    tools: Optional = UNSET
    id: Optional = UNSET
    metadata: Optional = UNSET
    expectations: Optional = UNSET


class _LooseEntry(Struct, gc=False):
    type: Optional = UNSET
    role: Optional = UNSET
    content: Optional = UNSET
    tool_calls: Optional = UNSET


strict: Callable[[bytes], Conversation] = msgspec.json.Decoder(Conversation).decode
string: Callable[[Raw | bytes], str] = msgspec.json.Decoder(str).decode

_loose: Callable[[bytes], _LooseConversation] = msgspec.json.Decoder(_LooseConversation).decode
_loose_entry: Callable[[bytes], _LooseEntry] = msgspec.json.Decoder(_LooseEntry).decode
_members: Callable[[bytes], dict[str, Raw]] = msgspec.json.Decoder(dict[str, Raw]).decode
_objects: Callable[[Raw | bytes], list[Object]] = msgspec.json.Decoder(list[Object]).decode
_raw_entries: Callable[[Raw | bytes], list[Raw]] = msgspec.json.Decoder(list[Raw]).decode


def lenient(text: bytes) -> Conversation:
    """Read a conversation in which ``violations`` found nothing: last keys count, an item's role may be anything."""
    loose = _loose(text)
    messages, items = (
        [_loose_entry(entry) for entry in entries(raw)] if isinstance(raw, Raw) else None
        for raw in (loose.messages, loose.items)
    )
    conversation = Conversation(id=loose.id, metadata=loose.metadata)
    if messages is not None:
        conversation.messages = [
            Message("assistant" if _string(each.role) == "assistant" else "user", "", each.tool_calls)
            for each in messages
        ]
    if items is not None:
        conversation.items = [Item(_string(each.type) or "", _string(each.role)) for each in items]
    return conversation


def entries(array: Raw | bytes) -> Iterable[bytes]:
    """Return the elements of an array, verbatim; one after the other where there are too many to be held."""
    held = slices(array)
    if held is not None:
        return map(bytes, held)
    text = bytes(array)
    return (text[start:end] for start, end in elements(text, 0))


def slices(array: Raw | bytes) -> list[Raw] | None:
    """Return the elements of an array, or None where there are too many to be held."""
    return None if len(array) > 2 * MOST_ENTRIES and _too_many(array) else _raw_entries(array)


def conversation_members(text: bytes) -> dict[str, bytes]:
    """Return the members of a conversation that the door has rules for, in document order unless it is very large."""
    if len(text) <= _SMALL_BYTES:
        return {
            name: bytes(raw) for name, raw in _members(text).items() if name in _LooseConversation.__struct_fields__
        }
    return _given(_loose(text))


def entry_members(text: bytes) -> dict[str, bytes]:
    """Return ``type``, ``role``, ``content`` and ``tool_calls`` of an entry, ordered as ``conversation_members``."""
    if len(text) <= _SMALL_BYTES:
        return {name: bytes(raw) for name, raw in _members(text).items() if name in _LooseEntry.__struct_fields__}
    return _given(_loose_entry(text))


def _given(values: Struct) -> dict[str, bytes]:
    found = ((name, getattr(values, name)) for name in values.__struct_fields__)
    return {name: bytes(value) for name, value in found if value is not UNSET}


def _too_many(array: Raw | bytes) -> bool:
    if bytes(array).count(b",") < MOST_ENTRIES:
        return False
    try:
        return len(_objects(array)) > MOST_ENTRIES
    except msgspec.ValidationError:
        return True


def _string(raw: Optional) -> str | None:
    return string(raw) if isinstance(raw, Raw) and bytes(raw).startswith(b'"') else None
