"""Responses API items: the ordered stream of messages, tool calls, outputs and whatever else an agent leaves behind.

The table in ``transcripts/items.py`` says how each type is read. Here the entries are walked once, in order, and put
together. An entry whose type is not in the table costs one event and one count, since a body may hold millions.
"""

from dataclasses import replace

from app.transcripts import content
from app.transcripts.calls import build_calls
from app.transcripts.catalogue import Catalogue
from app.transcripts.entry import Entry
from app.transcripts.formats.model import Format
from app.transcripts.items import ITEM_TYPES, ItemType
from app.transcripts.model import Event, EventKind, Json, Transcript
from app.transcripts.notes import Notes
from app.transcripts.recording import NotAdmittedError, Recording
from app.transcripts.tool_item import ToolItem
from app.transcripts.turns import TurnCounter, build_turns

_WRAPPED = ("provider_data", "providerData")
_ROLES: dict[str, EventKind] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}


class _Walk:
    """Reads the entries one after the other."""

    def __init__(self, recording: Recording, catalogue: Catalogue, notes: Notes) -> None:
        self.recording = recording
        self.catalogue = catalogue
        self.notes = notes
        self.turns = TurnCounter()
        self.tool_items: list[ToolItem] = []
        self.context_incomplete = False
        self._types: dict[str, str] = {}

    def event(self, index: int, item: dict[str, Json]) -> Event:
        type_ = _type(index, item)
        spec = ITEM_TYPES.get(type_)
        if spec is None:
            return self._unknown(index, type_)
        entry = Entry(item, index, self.recording.raw, self.recording.starts["items"][index])
        match spec.role:
            case "message":
                return self._message(entry)
            case "call" | "output" | "both":
                return self._tool(entry, type_)
            case "reasoning":
                return self._reasoning(entry, type_)
            case "catalogue":
                return self._catalogue(entry, type_)
            case "ignored" | "gap":
                return self._ignored(index, type_, gap=spec.role == "gap")

    def _unknown(self, index: int, type_: str) -> Event:
        self.notes.add("unknown_item_type", "items", index, detail=type_)
        # A million items of one type share its name and the text that stands for them.
        type_ = self._types.setdefault(type_, type_)
        text = self._types.setdefault(f"[{type_}]", f"[{type_}]")
        return Event(index, "unknown", self.turns.next("unknown"), text, item_type=type_)

    def _ignored(self, index: int, type_: str, *, gap: bool) -> Event:
        if gap:
            self.context_incomplete = True
            self.notes.add("context_incomplete", "items", index, detail=type_)
        return Event(index, "unknown", self.turns.next("unknown"), f"[{type_}]", item_type=type_)

    def _message(self, entry: Entry) -> Event:
        role = entry.item.get("role")
        kind = _ROLES.get(role, "unknown") if isinstance(role, str) else "unknown"
        if kind == "unknown":
            code = "unknown_role" if isinstance(role, str) else "missing_role"
            self.notes.add(code, "items", entry.index, detail=role if isinstance(role, str) else "")
        read = content.reply if kind == "assistant" else content.message
        said = read(entry, self.notes)
        if kind == "assistant" and entry.item.get("status") == "incomplete":
            self.notes.add("reply_cut", "items", entry.index)
        phase = entry.named("phase") if kind == "assistant" else None
        turn = self.turns.next(kind)
        return Event(entry.index, kind, turn, said.text, said.segments, phase=phase, refusal=said.refusal)

    def _reasoning(self, entry: Entry, type_: str) -> Event:
        said = content.reasoning(entry, self.notes)
        turn = self.turns.next("reasoning")
        return Event(entry.index, "reasoning", turn, said.text, said.segments, type_)

    def _catalogue(self, entry: Entry, type_: str) -> Event:
        names = self.catalogue.discover(entry.index, entry.item)
        server = entry.named("server_label")
        if entry.item.get("error"):
            self.notes.add("list_tools_failed", "items", entry.index, detail=server or "")
        text = f"tools of {server}: {', '.join(names)}" if server else f"tools: {', '.join(names)}"
        return Event(entry.index, "catalogue", self.turns.next("catalogue"), text, item_type=type_)

    def _tool(self, entry: Entry, type_: str) -> Event:
        entry, spec = _unwrapped(entry, ITEM_TYPES[type_])
        kind: EventKind = "output" if spec.role == "output" else "call"
        turn = self.turns.next(kind)
        name = _tool_name(entry, spec)
        arguments = spec.arguments(entry, self.notes) if spec.role != "output" else None
        output = spec.output(entry, self.notes) if spec.role != "call" else None
        self.tool_items.append(ToolItem(entry, spec, turn, name, arguments, output))
        if entry.item.get("status") == "incomplete":
            self.notes.add("item_incomplete", "items", entry.index, detail=type_)
        if type_ == "tool_search_output":
            self.catalogue.discover(entry.index, entry.item)
        shown, segments = [], []
        if arguments is not None:
            shown.append(f"{name or '?'}({arguments.text})")
            segments += [entry.string(entry.item[spec.named_by], spec.named_by)] if name and not spec.tool else []
            segments += arguments.segments
        if output is not None:
            shown.append(output.text)
            segments += output.segments
        return Event(entry.index, kind, turn, "\n".join(filter(None, shown)), tuple(segments), type_)


def _type(index: int, item: dict[str, Json]) -> str:
    type_ = item.get("type")
    if not isinstance(type_, str) or not type_:
        raise NotAdmittedError(f"items[{index}]: the type is not a non-empty string")
    return type_


def _unwrapped(entry: Entry, spec: ItemType) -> tuple[Entry, ItemType]:
    """Return the hosted call inside the wrapper that the agents SDK writes around it."""
    for key in _WRAPPED if entry.item["type"] == "hosted_tool_call" else ():
        payload = entry.item.get(key)
        type_ = payload.get("type") if isinstance(payload, dict) else None
        inner = ITEM_TYPES.get(type_) if isinstance(type_, str) else None
        if isinstance(payload, dict) and inner is not None and inner.role in ("call", "output", "both"):
            return replace(entry, item=payload, base=(key,)), inner
    return entry, spec


def _tool_name(entry: Entry, spec: ItemType) -> str | None:
    if spec.tool is not None:
        return spec.tool
    name = entry.named(spec.named_by)
    if name is None:
        return None
    namespace = entry.named("namespace") if spec.family in ("function", "custom") else None
    if spec.kind == "hosted":
        name = name.removesuffix("_call")
    return spec.prefix + (f"{namespace}.{name}" if namespace else name)


def _normalise(recording: Recording, notes: Notes) -> Transcript:
    catalogue = Catalogue(notes)
    catalogue.declare(_declared(recording))
    walk = _Walk(recording, catalogue, notes)
    events = [walk.event(index, item) for index, item in enumerate(recording.document["items"])]
    if not any(event.kind == "assistant" for event in events):
        raise NotAdmittedError("items: no assistant message")
    made = build_calls(walk.tool_items, catalogue)
    for event in made.executions:
        events[event] = replace(events[event], kind="output")
    for event in made.orphans:
        notes.add("orphan_output", "items", event)
    if recording.document.get("previous_response_id"):
        walk.context_incomplete = True
        notes.add("context_incomplete", "previous_response_id", detail="previous_response_id")
    tools = catalogue.tools()
    return Transcript(
        format="items",
        source="items",
        events=tuple(events),
        turns=build_turns(events, made.calls),
        calls=made.calls,
        catalogue=tools,
        facts=made.facts,
        catalogue_declared=bool(tools),
        context_incomplete=walk.context_incomplete,
        raw=recording.raw,
        document=recording.document,
        starts=recording.starts,
    )


def _declared(recording: Recording) -> list[dict[str, Json]]:
    tools = recording.document.get("tools", [])
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        raise NotAdmittedError("tools: not an array of objects")
    return tools


ITEMS = Format("items", "items", _normalise)
