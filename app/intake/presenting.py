"""A stored conversation as the API shows it: events, calls, catalogue and what is odd about them.

It is worked out from the evidence each time it is asked for, never stored, so that a better normalisation shows the
next time somebody looks.
"""

from collections.abc import Iterable
from typing import Any

import msgspec
import zstandard

from app.transcripts.model import ToolCall, Warning_
from app.transcripts.parsing import parse


def present(stored: bytes, known: Iterable[Warning_] = ()) -> bytes:
    """Return the JSON object {events, calls, catalogue, warnings} of a stored, compressed conversation.

    ``known`` are the warnings it was stored with; reading it whole finds some of them again and others besides.
    """
    transcript = parse(zstandard.ZstdDecompressor().decompress(stored))
    warnings = {(each.code, each.pointer): each for each in (*transcript.warnings, *known)}
    return msgspec.json.encode(
        {
            "events": [
                {"index": event.index, "kind": event.kind, "turn": event.turn, "text": event.text}
                for event in transcript.events
            ],
            "calls": [_call(call) for call in transcript.calls],
            "catalogue": [{"name": tool.name, "origin": tool.origin} for tool in transcript.catalogue],
            "warnings": [
                {"pointer": each.pointer, "code": each.code, "message": each.message, "count": each.count}
                for each in warnings.values()
            ],
        }
    )


def _call(call: ToolCall) -> dict[str, Any]:
    undecodable = call.arguments is None and call.arguments_error is not None
    return {
        "event": call.event,
        "output_event": call.output_event,
        "call_id": call.call_id,
        "tool_name": call.tool_name,
        "kind": call.kind,
        "arguments": call.arguments_raw if undecodable else call.arguments,
        "output": call.output,
        "output_available": call.output_available,
        "outcome": call.outcome,
        "error": call.error,
        "schema_checkable": call.schema_checkable,
        "parent_call_id": call.parent_call_id,
    }
