"""Conversations written for one purpose each, in as few words as the purpose allows."""

import json
from typing import Any

from app.transcripts.model import Transcript
from app.transcripts.parsing import parse

USER = {"type": "message", "role": "user", "content": "Where is parcel 7?"}
REPLY = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "In Turin."}]}


def call(
    name: str = "find_parcel", call_id: Any = "c1", arguments: Any = '{"number": 7}', **more: Any
) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments} | more


def output(value: Any = '{"city": "Turin"}', call_id: Any = "c1", **more: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": value} | more


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]} | more


def asked(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": text}


def items(*entries: Any, tools: Any = None) -> Transcript:
    """Parse a conversation of these items; a reply is added where there is none."""
    replied = any(entry.get("role") == "assistant" for entry in entries)
    document: dict[str, Any] = {"items": [*entries] if replied else [*entries, REPLY]}
    if tools is not None:
        document["tools"] = tools
    return parse(json.dumps(document).encode())


def codes(transcript: Transcript) -> dict[str, int]:
    """Return the codes of the warnings, with their counts."""
    found: dict[str, int] = {}
    for warning in transcript.warnings:
        found[warning.code] = found.get(warning.code, 0) + warning.count
    return found
