"""What the agent asked of a tool, from wherever an item type keeps it.

Function and MCP calls carry a JSON-encoded object (the Agents API an object as it is); custom tools free text; hosted
tools an action or a few fields. Missing, null and empty arguments count as ``{}``: providers emit ``""`` for tools
that take none. Anything else that is not an object is the agent's mistake, kept as a value for judges to see.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from app.transcripts.content import shown, without_images
from app.transcripts.entry import Entry
from app.transcripts.inner_json import decode
from app.transcripts.model import Json, Segment
from app.transcripts.notes import Notes


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of one call. The fields are those of ``ToolCall``; ``text`` is what a reader sees."""

    value: Json = None
    raw: str | None = None
    pointer: str = ""
    error: str | None = None
    text: str = ""
    segments: tuple[Segment, ...] = ()


ArgumentReader: TypeAlias = Callable[[Entry, Notes], Arguments]


def encoded(entry: Entry, notes: Notes) -> Arguments:
    """Read ``arguments`` that are a JSON-encoded object, or an object as it is."""
    value = entry.item.get("arguments")
    if value is None or value == "":
        notes.add("empty_arguments", "items", entry.index, *entry.base)
        place = entry.pointer("arguments") if "arguments" in entry.item else entry.pointer()
        return Arguments({}, value, place)
    if isinstance(value, str):
        return _decoded(entry, value, notes)
    segment = entry.verbatim("arguments")
    error = _not_an_object(value)
    return Arguments(None if error else value, None, segment.pointer, error, shown(segment), (segment,))


def free_text(entry: Entry, notes: Notes) -> Arguments:
    """Read the ``input`` of a custom tool: free text that is never malformed."""
    value = entry.item.get("input")
    if value is None:
        notes.add("empty_arguments", "items", entry.index, *entry.base)
        return Arguments({}, None, entry.pointer())
    return fields("input")(entry, notes)


def whole(key: str) -> ArgumentReader:
    """Return a reader of the value under ``key``, as it is; None where it is missing."""

    def read(entry: Entry, _: Notes) -> Arguments:
        value = entry.item.get(key)
        if value is None:
            return Arguments(None, None, entry.pointer())
        segment = entry.segment(value, key)
        raw = value if isinstance(value, str) else None
        return Arguments(value, raw, segment.pointer, None, shown(segment), (segment,))

    return read


def fields(*keys: str) -> ArgumentReader:
    """Return a reader of those of ``keys`` that are there, as an object."""

    def read(entry: Entry, _: Notes) -> Arguments:
        found = {key: entry.item[key] for key in keys if entry.item.get(key) is not None}
        segments = tuple(entry.segment(value, key) for key, value in found.items())
        only = segments[0] if len(segments) == 1 else None
        raw = only.text if only and only.is_string else None
        text = shown(only) if only else _dumped(found)
        return Arguments(found, raw, only.pointer if only else entry.pointer(), None, text, segments)

    return read


def web_action(entry: Entry, _: Notes) -> Arguments:
    """Read what a web search did: its action without the sources, which are the result."""
    action = entry.item.get("action")
    if not isinstance(action, dict):
        return Arguments(None, None, entry.pointer())
    value = {"action": action.get("type")} | {key: action[key] for key in action if key not in ("type", "sources")}
    segments = tuple(
        entry.string(text, "action", key)
        for key, text in action.items()
        if isinstance(text, str) and key not in ("type", "sources")
    )
    return Arguments(value, None, entry.pointer("action"), None, _dumped(value), segments)


def nothing(entry: Entry, _: Notes) -> Arguments:
    """Return that a call of this type has no arguments."""
    return Arguments({}, None, entry.pointer())


def _decoded(entry: Entry, raw: str, notes: Notes) -> Arguments:
    decoded = decode(raw)
    error = decoded.error or _not_an_object(decoded.value)
    segment = entry.string(raw, "arguments")
    place: tuple[str | int, ...] = ("items", entry.index, *entry.base, "arguments")
    for key in decoded.repeated_keys:
        notes.add("repeated_key", *place, detail=key)
    if decoded.replaced:
        notes.add("replaced_characters", *place, count=decoded.replaced)
    return Arguments(None if error else decoded.value, raw, segment.pointer, error, without_images(raw), (segment,))


def _not_an_object(value: Json) -> str | None:
    if isinstance(value, dict):
        return None
    kinds = {str: "a string", list: "an array", bool: "a boolean", type(None): "null"}
    return f"{kinds.get(type(value), 'a number')}, not an object"


def _dumped(value: Json) -> str:
    return without_images(json.dumps(value, ensure_ascii=False)) if value else ""
