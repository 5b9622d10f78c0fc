"""Recordings for the tests of tool judges, written down as briefly as a test needs them."""

import json
from collections.abc import Sequence
from typing import Any

from app.findings.model import Decision, Evidence
from app.judges.contract import Bench, Case, Judge, SchemaCheck
from app.transcripts.model import Transcript
from app.transcripts.parsing import parse


class NoSchemas:
    """A checker that no test may reach."""

    async def check(self, jobs: Sequence[tuple[str, str]]) -> list[SchemaCheck]:
        raise AssertionError(f"{len(jobs)} schemas were checked")


def user(text: str = "Please go on.") -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": text}


def said(text: str = "Done.") -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def call(name: str | None = "get_stock", arguments: Any = "{}", id_: str = "c1") -> dict[str, Any]:
    written = arguments if isinstance(arguments, str) or arguments is None else json.dumps(arguments)
    item = {"type": "function_call", "call_id": id_, "arguments": written}
    return item if name is None else item | {"name": name}


def output(value: Any = '{"stock": 3, "place": "aisle 14"}', id_: str = "c1") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": id_, "output": value}


def called(name: str, arguments: Any, value: Any) -> list[dict[str, Any]]:
    """Return a call and its output; ids repeat, as they do in real recordings."""
    return [call(name, arguments), output(value)]


def tool(name: str = "get_stock", parameters: Any = None) -> dict[str, Any]:
    entry = {"type": "function", "name": name}
    return entry if parameters is None else entry | {"parameters": parameters}


def recorded(*items: dict[str, Any], tools: Sequence[dict[str, Any]] | None = None) -> Transcript:
    document: dict[str, Any] = {"items": [*items, said()]}
    if tools is not None:
        document["tools"] = list(tools)
    return parse(json.dumps(document).encode())


async def decide(judge: Judge, transcript: Transcript, bench: Bench | None = None) -> list[Decision]:
    """Return the judge's decisions, in the order of its subjects; every finding's evidence has been re-cut."""
    case = Case(transcript, nonce="0" * 16)
    bench = bench or Bench(NoSchemas())
    decisions = [await judge.decide(case, subject, bench) for subject in judge.subjects(case)]
    for decision in decisions:
        assert decision.reason_code is None or decision.reason_code in judge.reasons
        for finding in decision.findings:
            assert judge.severities[finding.code] == finding.severity
            assert all(recut(transcript, place) == place.quote for place in finding.evidence)
    return decisions


def recut(transcript: Transcript, place: Evidence) -> str:
    """Return what stands at a place, read from the document without the product's help."""
    value: Any = transcript.document[place.source][place.event]
    for token in place.pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        value = value[int(key)] if isinstance(value, list) else value[key]
    return value[place.start : place.end] if isinstance(value, str) else json.dumps(value)
