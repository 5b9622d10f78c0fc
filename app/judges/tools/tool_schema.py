"""A tool's schema: as the text that a checker takes, and as the place that a finding cites.

One tool may be called ten thousand times, so both are kept for a while. They are known by the hash of the recording:
keeping the transcript itself would hold on to megabytes.
"""

import json
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TypeAlias

from app.findings.model import Evidence
from app.judges.contract import MAX_SCHEMA_BYTES
from app.judges.tools.places import short_cite
from app.transcripts.model import Json, Tool, Transcript

_SCHEMAS_KEPT = 64
_PLACES_KEPT = 256
_LONGEST_CITED = 64 * 1024
"""Characters of schema text. Finding a place in a longer one holds everybody up, for a quote that merely supports."""

_Key: TypeAlias = tuple[int, str, int, str]


@dataclass(frozen=True, slots=True)
class _Known:
    text: str | None
    places: dict[str, Evidence | None] = field(default_factory=dict)


_known: OrderedDict[_Key, _Known] = OrderedDict()


def schema_text(transcript: Transcript, tool: Tool) -> str | None:
    """Return the JSON text of a tool's parameters, None when it is larger than a checker takes."""
    return _schema(transcript, tool).text


def schema_place(transcript: Transcript, tool: Tool, pointer: str) -> Evidence | None:
    """Cite a place of a tool's schema in support of a finding; None where it is too large to be shown."""
    known = _schema(transcript, tool)
    if known.text is None or len(known.text) > _LONGEST_CITED:
        return None
    if pointer in known.places:
        return known.places[pointer]
    place = short_cite(transcript, tool.source, tool.event, tool.parameters_pointer + pointer, "support")
    if len(known.places) < _PLACES_KEPT:
        known.places[pointer] = place
    return place


def _schema(transcript: Transcript, tool: Tool) -> _Known:
    key = (hash(transcript.raw), tool.source, tool.event, tool.parameters_pointer)
    known = _known.get(key)
    if known is None:
        known = _known[key] = _Known(_encoded(tool.parameters))
        if len(_known) > _SCHEMAS_KEPT:
            _known.popitem(last=False)
    return known


def _encoded(schema: Json) -> str | None:
    """Encode piece by piece, so as to stop in time: encoding 20 MB at once would stall every other conversation."""
    pieces: list[str] = []
    size = 0
    for piece in json.JSONEncoder(separators=(",", ":")).iterencode(schema):
        pieces.append(piece)
        size += len(piece)
        if size > MAX_SCHEMA_BYTES:
            return None
    return "".join(pieces)
