"""What the door decodes of a conversation: as little as its rules need, everything else stays text.

Two readers for each list of entries. The strict one is a single call of the compiled decoder and refuses whatever
breaks a rule. It also refuses what merely looks like it, such as ``{"role": null, "role": "user"}``, where the last
value counts; the lenient reader reads those.
"""

from collections.abc import Callable, Iterable
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from app.transcripts.admission_spans import elements

Optional: TypeAlias = Raw | UnsetType
MOST_ENTRIES = 4_000_000
"""More entries than that are never held at once; no list of 30 MB that is valid has as many."""
_SMALL_BYTES = 1 << 20


class Fields(Struct, gc=False):
    """A conversation."""

    messages: Optional = UNSET
    items: Optional = UNSET
    tools: Optional = UNSET
    id: Optional = UNSET
    metadata: Optional = UNSET
    expectations: Optional = UNSET


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


class _Loose(Struct, gc=False):
    type: Optional = UNSET
    role: Optional = UNSET
    content: Optional = UNSET
    tool_calls: Optional = UNSET


fields: Callable[[bytes], Fields] = msgspec.json.Decoder(Fields).decode
strict_messages: Callable[[Raw], list[Message]] = msgspec.json.Decoder(list[Message]).decode
strict_items: Callable[[Raw], list[Item]] = msgspec.json.Decoder(list[Item]).decode
objects: Callable[[Raw | bytes], list[Object]] = msgspec.json.Decoder(list[Object]).decode
string: Callable[[Raw | bytes], str] = msgspec.json.Decoder(str).decode

_loose: Callable[[bytes], _Loose] = msgspec.json.Decoder(_Loose).decode
_members: Callable[[bytes], dict[str, Raw]] = msgspec.json.Decoder(dict[str, Raw]).decode
_raw_entries: Callable[[Raw | bytes], list[Raw]] = msgspec.json.Decoder(list[Raw]).decode


def lenient_messages(raw: Raw) -> list[Message]:
    """Read messages that break no rule once the last of repeated keys counts."""
    read = [_loose(entry) for entry in entries(raw)]
    return [Message(_string_or_none(each.role), _string_or_none(each.content), each.tool_calls) for each in read]  # type: ignore[arg-type] # checked by `violations`


def lenient_items(raw: Raw) -> list[Item]:
    """Read items that break no rule once the last of repeated keys counts; a role may be anything."""
    read = [_loose(entry) for entry in entries(raw)]
    return [Item(_string_or_none(each.type), _string_or_none(each.role)) for each in read]  # type: ignore[arg-type] # checked by `violations`


def entries(array: Raw | bytes) -> Iterable[bytes]:
    """Return the elements of an array, verbatim; one after the other where there are too many to be held."""
    if len(array) > 2 * MOST_ENTRIES and _too_many(array):
        text = bytes(array)
        return (text[start:end] for start, end in elements(text, 0))
    return map(bytes, _raw_entries(array))


def conversation_members(text: bytes) -> dict[str, bytes]:
    """Return the members of a conversation that the door has rules for, in document order unless it is very large."""
    if len(text) <= _SMALL_BYTES:
        return {name: bytes(raw) for name, raw in _members(text).items() if name in Fields.__struct_fields__}
    return _given(fields(text))


def entry_members(text: bytes) -> dict[str, bytes]:
    """Return ``type``, ``role``, ``content`` and ``tool_calls`` of an entry, ordered as ``conversation_members``."""
    if len(text) <= _SMALL_BYTES:
        return {name: bytes(raw) for name, raw in _members(text).items() if name in _Loose.__struct_fields__}
    return _given(_loose(text))


def _given(values: Struct) -> dict[str, bytes]:
    found = ((name, getattr(values, name)) for name in values.__struct_fields__)
    return {name: bytes(value) for name, value in found if value is not UNSET}


def _too_many(array: Raw | bytes) -> bool:
    if bytes(array).count(b",") < MOST_ENTRIES:
        return False
    try:
        return len(objects(array)) > MOST_ENTRIES
    except msgspec.ValidationError:
        return True


def _string_or_none(raw: Optional) -> str | None:
    return string(raw) if isinstance(raw, Raw) and bytes(raw).startswith(b'"') else None
