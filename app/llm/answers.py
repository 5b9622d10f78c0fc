"""Whether what a model wrote is an answer. ``strict`` is a hint that self-hosted endpoints ignore, so we check.

Models wrap answers in fences, prose and thinking aloud. The last JSON object counts, never the first: transcripts plant
fake verdicts, and a model that quotes one quotes it before its own. An object that is broken spoils the text: what lies
inside it could be such a quotation.
"""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import islice
from typing import Any, NoReturn

import jsonschema_rs
import msgspec

from app.transcripts.text import replace_unstorable

_MAX_CHARS = 1 << 18
_MAX_OBJECTS = 256
"""Scanning for objects is quadratic in braces, so both are bounded; whatever lies beyond is no answer."""
_MAX_PROBLEMS = 5
_OBJECT_START = re.compile(r"\{\s*['\"]")


class MalformedAnswerError(Exception):
    """The text is no answer; the message says why, in words a model can act on."""


class AnswerFormat:
    """A JSON Schema that answers have to satisfy."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = msgspec.json.encode(schema)
        self._validator = _validator(self.schema)

    def read(self, text: str) -> Mapping[str, Any]:
        """Return the answer in ``text``, its strings free of NUL and lone surrogates.

        Raises:
            MalformedAnswerError: when there is none.
        """
        value = _last_object(replace_unstorable(text)[0])
        try:
            problems = list(islice(self._validator.iter_errors(value), _MAX_PROBLEMS))
        except ValueError:
            raise MalformedAnswerError("the JSON is nested too deep") from None
        said = [f"at /{'/'.join(map(str, problem.instance_path))}: {problem.message[:200]}" for problem in problems]
        if said:
            raise MalformedAnswerError("the JSON does not satisfy the schema: " + "; ".join(said))
        answer: Mapping[str, Any] = value
        return answer


@lru_cache(maxsize=128)
def _validator(schema: bytes) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(json.loads(schema))


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _last_object(text: str) -> Any:
    try:
        whole = _DECODER.decode(text)
        if isinstance(whole, dict):
            return whole
    except (ValueError, RecursionError):
        pass
    found, position = None, text.find("{")
    for _ in range(_MAX_OBJECTS if len(text) <= _MAX_CHARS else 0):
        if position < 0:
            break
        try:
            found, end = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            if _OBJECT_START.match(text, position):
                raise MalformedAnswerError("it holds a JSON object that is broken or cut off") from None
            end = position + 1
        position = text.find("{", end)
    if found is None or position >= 0:
        raise MalformedAnswerError("it holds no JSON object")
    return found
