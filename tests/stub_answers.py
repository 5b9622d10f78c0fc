"""What the stub model says: minimal answers that satisfy whatever schema a judge sends, passing or failing."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

PASSING = ("pass", "5", "4", "yes", "supported", "none")
FAILING = ("fail", "1", "no", "unsupported")
_EVENT = re.compile(r"^\[e(\d+) (\w+)[^\n]*\n  (.+)", re.MULTILINE)


def passing_answer(schema: Mapping[str, Any]) -> Any:
    """Return the smallest instance of ``schema`` that says that all is well: a passing label, empty lists."""
    return _instance(schema, schema, PASSING, {}, fill=False)


def failing_answer(schema: Mapping[str, Any], event: int, quote: str) -> Any:
    """Return an instance of ``schema`` with a failing label and one item in every list, citing ``quote``."""
    values = {"event": f"e{event}", "quote": quote}
    return _instance(schema, schema, FAILING, values, fill=True)


def quotable(prompt: str) -> tuple[int, str]:
    """Return the last event of a rendered prompt, an assistant's where there is one, and its first line."""
    shown = [(int(number), kind, line.strip()) for number, kind, line in _EVENT.findall(prompt)]
    spoken = [event for event in shown if event[1] == "assistant"] or shown or [(0, "none", "nothing")]
    return spoken[-1][0], spoken[-1][2]


def another_event(prompt: str, event: int) -> int:
    """Return an event of the prompt that is not ``event``, or one that is not there at all."""
    return next((int(number) for number, _, _ in _EVENT.findall(prompt) if int(number) != event), event + 1)


def _instance(
    schema: Mapping[str, Any], root: Mapping[str, Any], prefer: Sequence[str], values: Mapping[str, Any], *, fill: bool
) -> Any:
    if "$ref" in schema:
        target: Any = root
        for token in schema["$ref"].removeprefix("#/").split("/"):
            target = target[token]
        return _instance(target, root, prefer, values, fill=fill)
    if "enum" in schema:
        return _choice(schema["enum"], prefer)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return _instance(schema[key][0], root, prefer, values, fill=fill)
    kind = schema.get("type", "object")
    if kind == "array":
        return [_instance(schema["items"], root, prefer, values, fill=fill)] if fill else []
    if kind == "object":
        return {
            name: values[name] if name in values else _instance(part, root, prefer, values, fill=fill)
            for name, part in schema.get("properties", {}).items()
        }
    return {"string": "stub", "integer": schema.get("minimum", 1), "number": 1, "boolean": False, "null": None}[kind]


def _choice(options: Sequence[Any], prefer: Sequence[str]) -> Any:
    named = {str(option): option for option in options}
    ranked = [named[name] for name in prefer if name in named]
    decided = [option for option in options if option != "cannot_determine"]
    return (ranked or decided or list(options))[0]
