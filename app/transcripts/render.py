"""A transcript as a model reads it: numbered events inside a fence that no recorded text can end or forge.

Structure is written at the left margin: the fence's two lines with the nonce, and one header an event. Recorded text
is only ever indented, its hidden characters spelt out and the nonce, should it hold it, replaced. So a line is either
ours or theirs by its first character, whatever stands in it.

The same transcript gives the same text for every dimension, and a text cut at an event (``until``) is the beginning of
the whole one, so that providers' prompt caches hold. That is why the declared tools come first and discovered ones
only where they were discovered: those are part of what was known later.

What exceeds ``budget_chars`` is left out from the middle of the longest events, then of the conversation, with a line
that says so; ``events_seen`` counts the events that are shown whole.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.transcripts.model import Event, Tool, Transcript
from app.transcripts.visible import visible

BUDGET_CHARS = 200_000
_HEADER_CHARS = 40
_LEAST_CHARS = 200
"""An event is not worth showing with less."""
_MOST_TOOLS_CHARS = 40_000
_MOST_NAMES = 500
_MOST_PARAMETERS = 12
_MOST_DESCRIPTION_CHARS = 160
_MOST_NAME_CHARS = 80
_NOT_IN_NAMES = re.compile(r"[^\w.:/-]+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")


@dataclass(frozen=True, slots=True)
class Rendered:
    """The fenced text, and how much of the transcript it shows."""

    text: str
    shown: frozenset[int]
    """Indices of the events that are shown, in part at least."""
    events_seen: int
    events_total: int


def render(
    transcript: Transcript, nonce: str, *, until: int | None = None, budget_chars: int = BUDGET_CHARS
) -> Rendered:
    """Return the transcript, or what stands before event ``until``, between markers that carry ``nonce``."""
    events = transcript.events if until is None else transcript.events[:until]
    head, tail = _kept(events, budget_chars)
    kept = [*head, *tail]
    texts = _texts(kept, transcript)
    bodies = [_indented(text[:budget_chars], nonce) for text in texts]
    share = _fair_share([len(body) for body in bodies], budget_chars - _HEADER_CHARS * len(kept))
    labels = _labels(transcript, kept)
    lines = list(_tool_section([tool for tool in transcript.catalogue if tool.origin == "declared"], nonce))
    whole = 0
    for position, (event, text, body) in enumerate(zip(kept, texts, bodies, strict=True)):
        if position == len(head) and len(kept) < len(events):
            lines.append(f"[... {len(events) - len(kept)} events are not shown ...]")
        lines.append(_header(event, labels.get(event.index, ""), nonce))
        fits = len(text) <= budget_chars and len(body) <= share
        lines += [body] if fits else _ends(text, share * min(len(text), budget_chars) // len(body), event, nonce)
        whole += fits
    text = fenced("transcript", nonce, lines)
    return Rendered(text, frozenset(event.index for event in kept), whole, len(events))


def render_events(transcript: Transcript, nonce: str, indices: Iterable[int], name: str) -> str:
    """Return a few events, headers and all, between markers called ``name``."""
    events = [transcript.events[index] for index in indices]
    labels = _labels(transcript, events)
    lines: list[str] = []
    for event, text in zip(events, _texts(events, transcript), strict=True):
        lines.append(_header(event, labels.get(event.index, ""), nonce))
        lines += _ends(text, BUDGET_CHARS // len(events), event, nonce)
    return fenced(name, nonce, lines)


def fenced(name: str, nonce: str, lines: Iterable[str]) -> str:
    """Put finished lines between two markers."""
    return "\n".join([f"<{name} {nonce}>", *lines, f"</{name} {nonce}>"])


def _texts(events: Iterable[Event], transcript: Transcript) -> list[str]:
    """Return what is recorded in each event; where tools were discovered, those tools."""
    found: dict[int, list[str]] = {}
    for tool in transcript.catalogue:
        if tool.origin == "discovered":
            found.setdefault(tool.event, []).append(_tool_line(tool))
    return ["\n".join(found[event.index]) if event.index in found else event.text for event in events]


def _header(event: Event, label: str, nonce: str) -> str:
    words = [f"e{event.index}", event.kind]
    if event.kind == "user":
        words.append(f"turn {event.turn}")
    if event.kind in {"unknown", "catalogue"}:
        words.append(_name(event.item_type))
    words += [_name(event.phase)] if event.phase else []
    words += ["refusal"] if event.refusal else []
    words += [label] if label else []
    return _without(nonce, f"[{' '.join(words)}]")


def _labels(transcript: Transcript, events: Sequence[Event]) -> Mapping[int, str]:
    """Say whose output an output is, and how a call ended where its output (or the lack of one) shows."""
    wanted = {event.index for event in events if event.kind in {"call", "output"}}
    labels: dict[int, str] = {}
    for call in transcript.calls if wanted else ():
        if call.output_event is None or call.output_event == call.event:
            labels[call.event] = call.outcome
        elif call.output_event in wanted:
            labels[call.output_event] = f"{_name(call.tool_name)} {call.outcome}"
    return labels


def _tool_section(tools: Sequence[Tool], nonce: str) -> Iterator[str]:
    room, shown = _MOST_TOOLS_CHARS, list[str]()
    for line in map(_tool_line, tools):
        room -= len(line)
        if room < 0:
            break
        shown.append(line)
    if shown:
        yield "[tools]"
        yield _indented("\n".join(shown), nonce)
    if rest := tools[len(shown) :]:
        yield f"[... {len(rest)} more tools, by name only ...]"
        yield _indented(", ".join(_name(tool.name) for tool in rest[:_MOST_NAMES]), nonce)


def _tool_line(tool: Tool) -> str:
    schema = tool.parameters if isinstance(tool.parameters, Mapping) else {}
    properties, required = schema.get("properties"), schema.get("required")
    names = list(properties)[: _MOST_PARAMETERS + 1] if isinstance(properties, Mapping) else []
    needed = set(map(str, required)) if isinstance(required, list) else set()
    parameters = [_name(name) + ("" if name in needed else "?") for name in names[:_MOST_PARAMETERS]]
    parameters += ["..."] if len(names) > _MOST_PARAMETERS else []
    described = " ".join((tool.description or "")[: 4 * _MOST_DESCRIPTION_CHARS].split())
    sentence = _SENTENCE_END.split(described, maxsplit=1)[0][:_MOST_DESCRIPTION_CHARS]
    kind = "" if tool.kind == "function" else f" {_name(tool.kind)}"
    return f"{_name(tool.name)}({', '.join(parameters)}){kind}" + (f": {sentence}" if sentence else "")


def _name(name: str | None) -> str:
    """Return a recorded name as one harmless word."""
    return _NOT_IN_NAMES.sub("_", visible((name or "unnamed")[:_MOST_NAME_CHARS]))


def _indented(text: str, nonce: str) -> str:
    return "  " + _without(nonce, visible(text)).replace("\n", "\n  ")


def _without(nonce: str, text: str) -> str:
    """Return the text with the nonce, which it cannot know but by a leak, taken out."""
    return text.replace(nonce, "nonce") if nonce and nonce in text else text


def _ends(text: str, limit: int, event: Event, nonce: str) -> list[str]:
    """Return the text, or its beginning and end around a line that says how much is missing."""
    if len(text) <= limit:
        return [_indented(text, nonce)]
    head, tail = text[: limit * 2 // 3], text[len(text) - limit // 3 :]
    gap = f"[... {len(text) - len(head) - len(tail)} characters of e{event.index} are not shown ...]"
    return [_indented(head, nonce), gap, _indented(tail, nonce)]


def _kept(events: Sequence[Event], budget_chars: int) -> tuple[Sequence[Event], Sequence[Event]]:
    """Return all events, or a third of those that fit from the beginning and two thirds from the end."""
    room = budget_chars // (_HEADER_CHARS + _LEAST_CHARS)
    if len(events) <= room:
        return events, ()
    first = room // 3
    return events[:first], events[len(events) - (room - first) :]


def _fair_share(lengths: Sequence[int], room: int) -> int:
    """Return the length at which to cut so that all fit: short ones whole, long ones equally."""
    if sum(lengths) <= room:
        return max(lengths, default=0)
    rest = room
    for position, length in enumerate(sorted(lengths)):
        share = rest // (len(lengths) - position)
        if length > share:
            return max(share, _LEAST_CHARS)
        rest -= length
    return room
