"""The tools an agent could have called: those declared in ``tools`` and those that the conversation discovers.

A declared tool takes precedence over a discovered one of the same name. Discovered tools are keyed by server and
name, in order of appearance: two MCP servers may both offer ``search``. Built-in tools and MCP servers are entries
without a schema: candidates for selection, skipped when arguments are checked.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from app.transcripts import pointer
from app.transcripts.model import Json, Tool
from app.transcripts.notes import Notes

MCP_SERVER = "mcp_server"
"""Kind of an entry that stands for whatever an MCP server offers."""

_DATE = re.compile(r"_\d{4}_\d{2}_\d{2}$")
_PREVIEW = re.compile(r"(?:_use)?_preview$")
_SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema")


@dataclass(frozen=True, slots=True)
class _Place:
    """An entry of a list of tools, where it stands, and what is known of it from there."""

    entry: Mapping[str, Json]
    pattern: Tool
    """What every tool found at this place has in common: origin, source, event, server."""
    path: tuple[str, ...] = ()
    namespace: str = ""

    def at(self, entry: Mapping[str, Json], *path: str, namespace: str = "") -> "_Place":
        return replace(self, entry=entry, path=self.path + path, namespace=namespace or self.namespace)


class Catalogue:
    """Collects the tools of one conversation, then says which of them a call means."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._declared: dict[str, Tool] = {}
        self._discovered: dict[tuple[str | None, str], Tool] = {}
        self._servers: dict[str, Tool] = {}
        self._hosted: dict[str, Tool] = {}
        self._by_bare_name: dict[str, list[Tool]] = {}

    def declare(self, entries: Sequence[Mapping[str, Json]]) -> None:
        """Add the entries of ``tools``."""
        for event, entry in enumerate(entries):
            for tool, bare_name in self._read(_Place(entry, Tool("", "declared", "function", event=event))):
                if tool.name in self._declared and tool.kind != MCP_SERVER:
                    self._notes.add("repeated_tool", "tools", event, detail=tool.name)
                else:
                    self._add(tool, bare_name)

    def discover(self, event: int, item: Mapping[str, Json]) -> list[str]:
        """Add the tools listed by an item of the conversation. Call it after ``declare``, in order.

        Returns:
            The names of all tools listed, of those too that are known already.
        """
        entries, names = item.get("tools"), []
        if not isinstance(entries, list):
            self._notes.add("tools_ignored", "items", event)
            return []
        is_mcp = item["type"] == "mcp_list_tools"
        server = item.get("server_label")
        pattern = Tool(
            "", "discovered", "mcp" if is_mcp else "function", source="items", event=event, available_from=event
        )
        if is_mcp and isinstance(server, str):
            pattern = replace(pattern, server_label=server)
        for number, entry in enumerate(entries):
            if not isinstance(entry, dict):
                self._notes.add("tools_ignored", "items", event, "tools", number)
                continue
            for tool, bare_name in self._read(_Place(entry, pattern, ("tools", str(number)))):
                names.append(tool.name)
                if tool.name not in self._declared and (tool.server_label, tool.name) not in self._discovered:
                    self._add(tool, bare_name)
        return names

    def tools(self) -> tuple[Tool, ...]:
        """Return everything the agent could have called, declared tools first."""
        return (*self._declared.values(), *self._servers.values(), *self._discovered.values())

    def resolve(self, name: str | None, kind: str, server_label: str | None = None) -> Tool | None:
        """Return the entry that a call means, if any.

        Args:
            name: the call's name, qualified with its namespace where it has one. A bare name means a tool inside a
                namespace, or of an MCP server, when only one is called that.
            kind: the call's ``kind``; tools of the platform are matched by their type alone.
            server_label: the MCP server it went to. A server whose tools were never listed stands for all of them.
        """
        if name is None:
            return None
        if kind not in ("function", "custom", "mcp", "approval"):
            return self._hosted.get(name)
        exact = self._declared.get(name) or self._discovered.get((server_label, name))
        if exact is not None:
            return exact
        called_so = self._by_bare_name.get(name, [])
        if len(called_so) == 1 and (server_label is None or called_so[0].server_label is None):
            return called_so[0]
        return None if server_label is None else self._servers.get(server_label)

    def _add(self, tool: Tool, bare_name: str) -> None:
        if tool.kind == MCP_SERVER:
            self._servers.setdefault(tool.name, tool)
            return
        if tool.origin == "declared":
            self._declared[tool.name] = tool
        else:
            self._discovered[tool.server_label, tool.name] = tool
        if tool.kind == "hosted":
            self._hosted.setdefault(_PREVIEW.sub("", tool.name), tool)
        self._by_bare_name.setdefault(bare_name, []).append(tool)

    def _read(self, place: _Place) -> Iterator[tuple[Tool, str]]:
        """Yield the tools of one entry, each with its name without namespace."""
        entry = place.entry
        nested, inside = entry.get("function"), entry.get("tools")
        if isinstance(nested, dict) and "name" not in entry:
            self._note("nested_tool", place, nested.get("name"))
            yield from self._read(place.at(nested | {"type": "function"}, "function"))
        elif entry.get("type") == "namespace" and isinstance(inside, list):
            namespace = f"{place.namespace}{_name(entry)}." if _name(entry) else place.namespace
            for number, member in enumerate(inside):
                if isinstance(member, dict):
                    yield from self._read(place.at(member, "tools", str(number), namespace=namespace))
        elif (found := _tool(place)) is not None:
            yield found
        else:
            self._note("unnamed_tool", place, entry.get("type"))

    def _note(self, code: str, place: _Place, detail: Json) -> None:
        where = (place.pattern.source, place.pattern.event, *place.path)
        self._notes.add(code, *where, detail=detail if isinstance(detail, str) else "")


def _tool(place: _Place) -> tuple[Tool, str] | None:
    entry, type_, name = place.entry, place.entry.get("type"), _name(place.entry)
    schema_key = next((key for key in _SCHEMA_KEYS if entry.get(key) is not None), None)
    if type_ == "mcp":
        label = entry.get("server_label")
        label = label if isinstance(label, str) and label else "mcp"
        return _made(place, label, MCP_SERVER, server_label=label), label
    if type_ == "custom" and name:
        return _made(place, place.namespace + name, "custom"), name
    if name and (type_ in ("function", None) or schema_key):
        schema_key = schema_key or _SCHEMA_KEYS[0]
        schema_pointer = pointer.build((*place.path, schema_key))
        found = _made(
            place,
            place.namespace + name,
            place.pattern.kind,
            parameters=entry.get(schema_key),
            parameters_pointer=schema_pointer,
        )
        return found, name
    if isinstance(type_, str) and type_ not in ("", "function", "custom", "namespace"):
        undated = _DATE.sub("", type_)
        return _made(place, undated, "hosted"), undated
    return None


def _made(place: _Place, name: str, kind: str, **known: Json) -> Tool:
    description = place.entry.get("description", place.entry.get("server_description"))
    return replace(
        place.pattern,
        name=name,
        kind=kind,
        description=description if isinstance(description, str) else None,
        pointer=pointer.build(place.path),
        **known,
    )


def _name(entry: Mapping[str, Json]) -> str:
    name = entry.get("name")
    return name if isinstance(name, str) else ""
