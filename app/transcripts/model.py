"""The one shape every recorded conversation is brought into before anything judges it.

What is counted, so that every judge counts the same:

* **event**: one entry of the source array, at its index there; nothing is merged, split or dropped.
* **tool call**: one decision of the agent to use a tool, with its output if one was recorded, whichever item types
  they came from. Platform plumbing (tool_search, list_tools, approvals) is normalised too, marked ``plumbing`` and
  never judged.
* **failed**: the record itself says so (an ``error`` key in a JSON result, the item's status or error, MCP
  ``isError``). Text that merely reads like an error is ``suspected_failure``.
* **turn**: a user message (consecutive ones are one) up to the next; what precedes the first belongs to turn 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

EventKind: TypeAlias = Literal["user", "assistant", "system", "call", "output", "reasoning", "catalogue", "unknown"]
Outcome: TypeAlias = Literal["ok", "failed", "suspected_failure", "no_output", "denied"]
Source: TypeAlias = Literal["items", "messages", "tools", "document"]
Json: TypeAlias = Any
"""A decoded JSON value."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One reason why a request is refused.

    ``loc`` holds the unescaped RFC 6901 tokens from the place that was parsed (a conversation, a request body);
    whoever embeds that place prefixes them.
    """

    loc: tuple[str | int, ...]
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Warning_:  # noqa: N801 - `Warning` is a builtin exception
    """Something a client should know about an accepted conversation; ``count`` repeats of it are one warning."""

    pointer: str
    code: str
    message: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of an event's text and the place it was read from.

    ``pointer`` is RFC 6901 inside the event's source entry. With ``is_string`` the value there is a string and
    ``text`` is it, decoded; otherwise ``text`` is the verbatim JSON text of the value there.
    """

    pointer: str
    text: str
    is_string: bool = True


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of ``items`` or ``messages``; ``text`` is what a reader sees of it."""

    index: int
    kind: EventKind
    turn: int
    text: str
    segments: tuple[Segment, ...] = ()
    item_type: str = "message"
    phase: str | None = None
    """``commentary`` or ``final_answer`` on assistant messages that carry it."""
    refusal: bool = False


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call, its output and how it ended. ``call_id`` is a label, not a key: real agents reuse them."""

    event: int
    output_event: int | None
    call_id: str | None
    tool_name: str | None
    """Qualified with its namespace (``crm.lookup``); None when the record names none."""
    kind: str
    """function, custom, mcp, hosted, computer, shell, patch, program, multi_agent, tool_search, approval ..."""
    turn: int
    arguments: Json = None
    """The decoded arguments; None when they could not be decoded (see ``arguments_error``) or none were recorded."""
    arguments_raw: str | None = None
    """The arguments exactly as recorded when they were a string; None when structured or absent."""
    arguments_pointer: str = "/arguments"
    arguments_error: str | None = None
    output: Json = None
    """Decoded when it is JSON, else the text, else None."""
    output_pointer: str = "/output"
    output_available: bool = False
    outcome: Outcome = "no_output"
    error: str | None = None
    namespace: str | None = None
    server_label: str | None = None
    parent_call_id: str | None = None
    plumbing: bool = False
    batch: int = 0
    """Calls with the same number were issued before any output of theirs came back; judge them as a set."""
    tool: "Tool | None" = None
    """The catalogue entry this call resolves to, if any."""

    @property
    def schema_checkable(self) -> bool:
        """Whether the arguments can be held against a declared JSON Schema."""
        return self.tool is not None and self.tool.parameters is not None

    @property
    def failed(self) -> bool:
        """Whether the record itself says that the call failed."""
        return self.outcome == "failed"


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool the agent could have called."""

    name: str
    origin: Literal["declared", "discovered"]
    kind: str
    """function, custom, mcp, hosted, or mcp_server for an entry that stands for whatever a server offers."""
    description: str | None = None
    parameters: Json = None
    """Its JSON Schema as recorded; None when there is none to check against."""
    server_label: str | None = None
    source: Source = "tools"
    event: int = 0
    """Index in ``source`` of the entry that declares it."""
    pointer: str = ""
    """Where inside that entry."""
    parameters_pointer: str = "/parameters"
    available_from: int | None = None
    """Event index from which on a discovered tool is known; None for declared ones."""


@dataclass(frozen=True, slots=True)
class RecordFact:
    """Something unsound in the record, never a reason to refuse a transcript.

    Codes: output_before_call, duplicate_call_id, call_without_output, orphan_output, malformed_call, second_output.
    """

    code: str
    event: int
    message: str
    call: int | None = None
    """Index in ``Transcript.calls``, where one is concerned."""
    pointer: str = ""
    """Inside the event: the words to cite."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A request of the user and everything the agent did about it. All fields hold event indices."""

    index: int
    user: tuple[int, ...]
    assistant: tuple[int, ...]
    """Every assistant message, commentary included."""
    reply: tuple[int, ...]
    """The assistant messages that answer: commentary left out where a final answer exists."""
    calls: tuple[int, ...]
    """Indices in ``Transcript.calls``."""
    reply_precedes_last_result: bool = False


@dataclass(frozen=True, slots=True)
class Transcript:
    """A normalised conversation. ``raw`` and ``document`` are kept so that evidence can be cut from the source."""

    format: str
    source: Literal["items", "messages"]
    events: tuple[Event, ...]
    turns: tuple[Turn, ...]
    calls: tuple[ToolCall, ...]
    catalogue: tuple[Tool, ...]
    facts: tuple[RecordFact, ...] = ()
    warnings: tuple[Warning_, ...] = ()
    catalogue_declared: bool = False
    """Whether there is any catalogue to judge selection against (``tools: []`` is none)."""
    context_incomplete: bool = False
    """Compaction or unresolved references: the agent knew things that are not in the record."""
    raw: str = field(default="", repr=False)
    """The conversation's JSON text, NUL and lone surrogate escapes already replaced by ``\\ufffd``."""
    document: Mapping[str, Json] = field(default_factory=dict, repr=False)
    """``raw``, decoded."""
    starts: Mapping[str, Sequence[int]] = field(default_factory=dict, repr=False, compare=False)
    """Where in ``raw`` the entries of ``items``, ``messages`` and ``tools`` begin; spares evidence a search."""

    @property
    def has_tool_calls(self) -> bool:
        """Whether there is a call that is not platform plumbing; without one there is no tool verdict at all."""
        return any(not call.plumbing for call in self.calls)

    @property
    def judged_calls(self) -> Sequence[ToolCall]:
        """The calls that tool judges look at, in order."""
        return [call for call in self.calls if not call.plumbing]

    def reply_text(self, turn: Turn) -> str:
        """Return the text that answers ``turn``, one line break between messages."""
        return "\n".join(self.events[index].text for index in turn.reply)
