"""A tool's schema as the text that the checker takes. One tool may be called ten thousand times, so it is kept."""

import json
from collections import OrderedDict

from app.judges.contract import MAX_SCHEMA_BYTES
from app.transcripts.model import Json, Tool

_KEPT = 32
_texts: OrderedDict[int, tuple[Tool, str | None]] = OrderedDict()


def schema_text(tool: Tool) -> str | None:
    """Return the JSON text of a tool's parameters, None when it is larger than a checker takes."""
    tool_kept, text = _texts.get(id(tool), (None, None))
    if tool_kept is not tool:  # while a tool is kept no other can have its id
        text = _encoded(tool.parameters)
        _texts[id(tool)] = (tool, text)
        if len(_texts) > _KEPT:
            _texts.popitem(last=False)
    return text


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
