"""Everything that judge endpoints are known to do wrong, one function each, for ``tests.stub_model``.

A behaviour gets the exchange, the request, the answer schema and the rule's ``seconds``; it returns False when it
does not apply to this request (a parameter it would reject is not there), so that the next rule is tried.
"""

import asyncio
import json
import socket
import struct
import zlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Protocol

from tests.stub_answers import another_event, failing_answer, passing_answer, quotable

USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 40}}
"""What every answer says it cost."""
BOMB_BYTES = 256 << 20
_REASONS = {200: "OK", 302: "Found", 429: "Too Many Requests"}


class Asked(Protocol):
    """The parts of a request that behaviours look at."""

    temperature: float | None
    max_tokens: int | None
    max_completion_tokens: int | None

    @property
    def text(self) -> str:
        """All messages, one after the other."""
        ...

    @property
    def response_format(self) -> Any:
        """Raw JSON."""
        ...


class Exchange:
    """One request's way back to the client."""

    def __init__(
        self,
        transport: asyncio.Transport,
        writable: asyncio.Event,
        ended: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.transport = transport
        self.writable = writable
        self._ended = ended
        self._sent = 0
        self._open = True
        self.task: asyncio.Task[None] | None = None

    def write(self, data: bytes) -> None:
        """Send bytes, unless the client has gone."""
        if not self.transport.is_closing():
            self._sent += len(data)
            self.transport.write(data)

    def close(self) -> None:
        """Count the exchange as over, once."""
        if self._open:
            self._open = False
            self._ended(self._sent)
            if self.task is not None:
                self.task.cancel()


def completion(answer: Any, finish: str = "stop", usage: Any = USAGE, **message: Any) -> bytes:
    """Return a chat completion whose content is ``answer``: a string as it is, anything else as JSON."""
    content = answer if isinstance(answer, str) or answer is None else json.dumps(answer)
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "stub", "choices": [choice], "usage": usage}
    return json.dumps(body).encode()


def respond(
    exchange: Exchange, body: bytes, status: int = 200, headers: str = "", kind: str = "application/json"
) -> bool:
    """Send a whole response; always True, as a behaviour that applied."""
    exchange.write(_head(status, len(body), headers, kind) + body)
    exchange.close()
    return True


def _head(status: int, length: int, headers: str = "", kind: str = "application/json") -> bytes:
    reason = _REASONS.get(status, "Status")
    return f"HTTP/1.1 {status} {reason}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{headers}\r\n".encode()


def _error(message: str, status: int, param: str | None = None, code: str | None = None, headers: str = "") -> Any:
    body = {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}
    return lambda exchange, *_: respond(exchange, json.dumps(body).encode(), status, headers)


def _say(make: Callable[[Any], bytes]) -> Any:
    return lambda exchange, _, schema, __: respond(exchange, make(schema))


def _raw(body: bytes, kind: str = "application/json") -> Any:
    return lambda exchange, *_: respond(exchange, body, kind=kind)


def _with(schema: Any, **changes: Any) -> bytes:
    return completion({**passing_answer(schema), **changes})


def _without_a_key(schema: Any) -> bytes:
    answer = passing_answer(schema)
    answer.pop(next(iter(answer)))
    return completion(answer)


def _in_prose(answer: Any) -> str:
    return f'<think>maybe {{"label": "fail"}}?</think>Sure!\n```json\n{json.dumps(answer)}\n```\nHope it helps.'


def _fail(exchange: Exchange, asked: Asked, schema: Mapping[str, Any], _: float) -> bool:
    return respond(exchange, completion(failing_answer(schema, *quotable(asked.text))))


def _unanchored(exchange: Exchange, _: Asked, schema: Mapping[str, Any], __: float) -> bool:
    return respond(exchange, completion(failing_answer(schema, 0, "words that stand nowhere in this conversation")))


def _wrong_event(exchange: Exchange, asked: Asked, schema: Mapping[str, Any], _: float) -> bool:
    event, quote = quotable(asked.text)
    return respond(exchange, completion(failing_answer(schema, another_event(asked.text, event), quote)))


def _wait(exchange: Exchange, seconds: float, status: int, message: str) -> bool:
    headers = f"Retry-After: {seconds:g}\r\n" if seconds else ""
    return respond(exchange, json.dumps({"error": {"message": message}}).encode(), status, headers)


def _hang(exchange: Exchange, *_: object) -> bool:
    return exchange is not None


def _drip(exchange: Exchange, *_: object) -> bool:
    async def drip() -> None:
        exchange.write(_head(200, 100_000))
        while True:
            exchange.write(b" ")
            await asyncio.sleep(0.02)

    exchange.task = asyncio.create_task(drip())
    return True


def _half_body(exchange: Exchange, _: Asked, schema: Mapping[str, Any], __: float) -> bool:
    body = completion(passing_answer(schema))
    exchange.write(_head(200, len(body)) + body[: len(body) // 2])
    exchange.transport.close()
    return True


def _garbage(exchange: Exchange, *_: object) -> bool:
    exchange.write(b"220 mail.test ESMTP\r\n")
    exchange.transport.close()
    return True


def _reset(exchange: Exchange, *_: object) -> bool:
    exchange.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    exchange.transport.abort()
    return True


def _huge_body(exchange: Exchange, *_: object) -> bool:
    async def pour() -> None:
        exchange.write(_head(200, 500 << 20))
        for _ in range(8000):
            exchange.write(b" " * 65536)
            await exchange.writable.wait()

    exchange.task = asyncio.create_task(pour())
    return True


@cache
def bomb() -> bytes:
    """Return 256 MB of nothing, packed; kept, because packing takes a second."""
    packer = zlib.compressobj(wbits=31)
    blank = b" " * (1 << 20)
    return b"".join([packer.compress(blank) for _ in range(BOMB_BYTES >> 20)]) + packer.flush()


def _gzip_bomb(exchange: Exchange, *_: object) -> bool:
    return respond(exchange, bomb(), headers="Content-Encoding: gzip\r\n")


def _rejects(parameter: str, message: str, code: str = "unsupported_parameter") -> Any:
    def behave(exchange: Exchange, asked: Asked, *_: object) -> bool:
        if getattr(asked, parameter) is None:
            return False
        return bool(_error(message, 400, parameter, code)(exchange))

    return behave


def _rejects_format(kind: bytes, message: str) -> Any:
    def behave(exchange: Exchange, asked: Asked, *_: object) -> bool:
        if kind not in bytes(asked.response_format):
            return False
        return bool(_error(message, 400, "response_format")(exchange))

    return behave


def _slow(exchange: Exchange, _: Asked, schema: Mapping[str, Any], seconds: float) -> bool:
    asyncio.get_running_loop().call_later(seconds, respond, exchange, completion(passing_answer(schema)))
    return True


def _overthinks(exchange: Exchange, asked: Asked, schema: Mapping[str, Any], _: float) -> bool:
    if (asked.max_completion_tokens or asked.max_tokens or 0) > 4096:
        return False
    respond(exchange, completion("", finish="length"))
    return True


BEHAVIOURS: dict[str, Callable[[Exchange, Any, Any, float], bool]] = {
    # answers
    "pass": _say(lambda schema: completion(passing_answer(schema))),
    "fail": _fail,
    "abstain": _say(lambda schema: _with(schema, label="cannot_determine")),
    "unanchored": _unanchored,
    "wrong_event": _wrong_event,
    # malformed answers
    "invalid_json": _say(lambda _: completion('{"reasoning": "because", "label": "pa')),
    "prose": _say(lambda schema: completion(_in_prose(passing_answer(schema)))),
    "wrong_enum": _say(lambda schema: _with(schema, label="excellent")),
    "extra_key": _say(lambda schema: _with(schema, confidence=0.9)),
    "missing_key": _say(_without_a_key),
    "wrong_type": _say(lambda schema: _with(schema, reasoning=["a", "list"])),
    "refusal": _say(lambda _: completion(None, refusal="I cannot help with that.")),
    "length": _say(lambda _: completion('{"reasoning": "so lo', finish="length")),
    "overthinks": _overthinks,
    "content_filter": _say(lambda _: completion("", finish="content_filter")),
    "null_content": _say(lambda _: completion(None)),
    "missing_usage": _say(lambda schema: completion(passing_answer(schema), usage=None)),
    "odd_usage": _say(lambda schema: completion(passing_answer(schema), usage={"prompt_tokens": "many"})),
    # responses that are no completion
    "html": _raw(b"<html><body>Welcome to the gateway</body></html>", "text/html"),
    "null": _raw(b"null"),
    "empty_choices": _raw(b'{"choices": []}'),
    "wrong_types": _raw(b'{"choices": [{"message": "hello", "finish_reason": 7}]}'),
    "broken_body": _raw(b'{"choices": [{"message": {"content": '),
    "empty_body": _raw(b""),
    # refusals by the endpoint
    "rate_limit": lambda exchange, _, __, seconds: _wait(exchange, seconds, 429, "Rate limit reached."),
    "quota": _error("You exceeded your current quota.", 429, code="insufficient_quota"),
    "server_error": _error("The server had an error.", 500),
    "unavailable": lambda exchange, _, __, seconds: _wait(exchange, seconds, 503, "Overloaded."),
    "bad_request": _error("Invalid 'messages'.", 400, "messages"),
    "unauthorized": _error("Incorrect API key provided: secret-key-for-tests.", 401, code="invalid_api_key"),
    "forbidden": _error("Not allowed: secret-key-for-tests.", 403),
    "not_found": _error("The model does not exist.", 404, "model", "model_not_found"),
    "redirect": _error("moved", 302, headers="Location: http://127.0.0.1:9/v1/chat/completions\r\n"),
    "context_overflow": _error(
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (max_tokens included).",
        400,
        "messages",
        "context_length_exceeded",
    ),
    "no_temperature": _rejects(
        "temperature", "Unsupported value: 'temperature' does not support 0 with this model.", "unsupported_value"
    ),
    "no_max_completion_tokens": _rejects(
        "max_completion_tokens", "Unrecognized request argument supplied: max_completion_tokens"
    ),
    "no_max_tokens": _rejects(
        "max_tokens", "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
    ),
    "no_json_schema": _rejects_format(
        b'"json_schema"', "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."
    ),
    "no_response_format": _rejects_format(b'"type"', "response_format is not supported."),
    # trouble on the wire
    "slow": _slow,
    "hang": _hang,
    "drip": _drip,
    "half_body": _half_body,
    "reset": _reset,
    "garbage": _garbage,
    "huge_body": _huge_body,
    "gzip_bomb": _gzip_bomb,
}
