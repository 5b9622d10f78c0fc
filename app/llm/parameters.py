"""Which parameters a model accepts, learnt from its refusals and remembered for the process.

Reasoning models refuse ``temperature`` and ``max_tokens``, older servers ``max_completion_tokens``, many the
``json_schema`` response format. Each refusal takes exactly one step down; where there is none left, the refusal stands.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import msgspec

from app.llm.errors import EndpointError

TokenLimit: TypeAlias = Literal["max_completion_tokens", "max_tokens"]
Format: TypeAlias = Literal["json_schema", "json_object"]
Message: TypeAlias = Mapping[str, str]

ROOM = 4
_FORMAT_WORDS = ("response_format", "json_schema", "json_object", "structured output", "grammar")
_TOO_MUCH = re.compile(r"too large|at most|exceeds|less than or equal")


@dataclass(frozen=True, slots=True)
class Parameters:
    """How to ask a model. The first guess is what the newest models want."""

    limit: TokenLimit | None = "max_completion_tokens"
    temperature: bool = True
    format: Format | None = "json_schema"
    roomy: bool = False
    """The model spends output tokens on thinking: give it ``ROOM`` times what the answer needs."""

    def without(self, refusal: EndpointError) -> "Parameters | None":
        """Return the next thing to try after a rejected request, None when it was not about a parameter of ours."""
        if self.format and any(_names(refusal, word) for word in _FORMAT_WORDS):
            return replace(self, format="json_object" if self.format == "json_schema" else None)
        if self.limit and _names(refusal, self.limit):
            other = self.limit == "max_completion_tokens" and not _TOO_MUCH.search(refusal.complaint)
            return replace(self, limit="max_tokens" if other else None)
        if self.temperature and _names(refusal, "temperature"):
            return replace(self, temperature=False)
        return None

    def body(self, model: str, messages: Sequence[Message], schema: bytes, tokens: int) -> bytes:
        """Return the request as JSON. Where the schema may not be sent, it is written into the last message."""
        request: dict[str, Any] = {"model": model, "messages": messages}
        if self.limit:
            request[self.limit] = tokens * ROOM if self.roomy else tokens
        if self.temperature:
            request["temperature"] = 0
        if self.format == "json_schema":
            answer = {"name": "answer", "strict": True, "schema": msgspec.Raw(schema)}
            request["response_format"] = {"type": "json_schema", "json_schema": answer}
        else:
            request["messages"] = [*messages[:-1], _with_schema(messages[-1], schema)]
            if self.format:
                request["response_format"] = {"type": self.format}
        return msgspec.json.encode(request)


def _names(refusal: EndpointError, word: str) -> bool:
    """Return whether the refusal is about a parameter; its own ``param`` field counts more than its text."""
    if refusal.parameter:
        return refusal.parameter.split(".")[0] == word
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", refusal.complaint) is not None


def _with_schema(message: Message, schema: bytes) -> Message:
    demand = "Answer with one JSON object that satisfies this JSON Schema, and nothing else:"
    return {**message, "content": f"{message['content']}\n\n{demand}\n{schema.decode()}"}
