"""A scripted judge endpoint over real HTTP: fast enough to be no bottleneck, and able to misbehave in every known way.

In a test::

    async with StubModel() as stub:
        stub.script("fail", contains="Did the agent")     # a failing answer to prompts that contain this
        stub.script("rate_limit", times=1)                # the first request that comes gets a 429
        ...  # base_url=stub.base_url; stub.stats.requests, stub.stats.max_in_flight, stub.stats.connections

As a process of its own (``python -m tests.stub_model --port 0``) or with ``stub_process()``: the same over
``POST /__script`` (a list of rules), ``GET /__stats`` and ``POST /__reset``.

Rules are tried in order; the first that applies decides. Without any, each answer is the smallest passing instance
of the schema that was sent. ``BEHAVIOURS`` lists what a rule can do besides giving an answer.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import urllib.request
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self, cast

import httptools
import msgspec

from tests.stub_answers import passing_answer
from tests.stub_misbehaviour import BEHAVIOURS, Exchange, completion, respond

Answerer = Callable[[str, Mapping[str, Any]], Any]
"""(prompt text, answer schema) → the answer: a mapping is sent as JSON, a string as it is."""


class _Message(msgspec.Struct):
    role: str
    content: str


class Request(msgspec.Struct):
    """What a judge asked."""

    messages: list[_Message]
    model: str = ""
    temperature: float | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    response_format: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def text(self) -> str:
        """All messages, one after the other."""
        return "\n".join(message.content for message in self.messages)


@dataclass
class Rule:
    """What to do with requests whose text contains ``contains``, at most ``times`` times."""

    behaviour: str = "answer"
    contains: str = ""
    times: int | None = None
    answer: Any = None
    seconds: float = 0.0
    """Retry-After of rate_limit and unavailable; the pause of slow."""


@dataclass
class Stats:
    """What was seen at the endpoint."""

    requests: int = 0
    in_flight: int = 0
    max_in_flight: int = 0
    connections: int = 0
    open_connections: int = 0
    bytes_sent: int = 0


@dataclass
class StubModel:
    """The endpoint; an async context manager. ``latency_seconds`` is added to every answer."""

    latency_seconds: float = 0.0
    answer: Answerer | None = None
    port: int = 0
    rules: list[Rule] = field(default_factory=list)
    stats: Stats = field(default_factory=Stats)
    seen: deque[Request] = field(default_factory=lambda: deque(maxlen=1000))
    headers: dict[str, str] = field(default_factory=dict)
    """Of the last request."""
    _server: asyncio.Server | None = None
    _connections: set["_Connection"] = field(default_factory=set)
    _schemas: dict[bytes, tuple[Any, bytes]] = field(default_factory=dict)

    @property
    def base_url(self) -> str:
        """Where a client has to point."""
        return f"http://127.0.0.1:{self.port}/v1"

    def script(self, behaviour: str = "answer", **rest: Any) -> None:
        """Add a rule; see ``Rule`` for the rest."""
        if behaviour != "answer" and behaviour not in BEHAVIOURS:
            raise ValueError(f"no such behaviour: {behaviour}")
        self.rules.append(Rule(behaviour, **rest))

    def reset(self) -> None:
        """Forget rules, counts and requests; keep the connections."""
        self.rules.clear()
        self.seen.clear()
        self.stats = Stats(open_connections=self.stats.open_connections)

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", self.port, backlog=2048)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for connection in tuple(self._connections):
            connection.abort()
        await self._server.wait_closed()
        await asyncio.sleep(0)

    def decide(self, request: Request, exchange: Exchange) -> None:
        """Answer one request by the first rule that applies."""
        text = request.text if self.rules or self.answer else ""
        for rule in self.rules:
            if rule.times == 0 or rule.contains not in text:
                continue
            schema = self._schema(request)[0]
            if rule.behaviour == "answer":
                respond(exchange, completion(rule.answer))
            elif not BEHAVIOURS[rule.behaviour](exchange, request, schema, rule.seconds):
                continue
            if rule.times is not None:
                rule.times -= 1
            return
        schema, usual = self._schema(request)
        respond(exchange, completion(self.answer(text, schema)) if self.answer else usual)

    def _schema(self, request: Request) -> tuple[Any, bytes]:
        key = bytes(request.response_format)
        if key not in self._schemas or key == b"null":
            wanted = json.loads(key) or {}
            schema = wanted.get("json_schema", {}).get("schema") or _schema_in(request.text)
            self._schemas[key] = (schema, completion(passing_answer(schema)))
        return self._schemas[key]


def _schema_in(text: str) -> Any:
    """Return the schema that a client wrote into its prompt because it may not send one."""
    for line in reversed(text.splitlines()):
        if line.startswith('{"') and '"properties"' in line:
            return json.loads(line)
    return {"type": "object"}


class _Connection(asyncio.Protocol):
    def __init__(self, stub: StubModel) -> None:
        self.stub = stub
        self.parser = httptools.HttpRequestParser(self)
        self.url = b""
        self.body: list[bytes] = []
        self.headers: dict[str, str] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's does not inherit from it
        self.writable = asyncio.Event()
        self.writable.set()
        self.exchange: Exchange | None = None
        self.stub.stats.connections += 1
        self.stub.stats.open_connections += 1
        self.stub._connections.add(self)

    def connection_lost(self, _: Exception | None) -> None:
        self.stub.stats.open_connections -= 1
        self.stub._connections.discard(self)
        if self.exchange is not None:
            self.exchange.close()

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def abort(self) -> None:
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self.abort()

    def on_url(self, url: bytes) -> None:
        self.url = url
        self.body, self.headers = [], {}

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode().lower()] = value.decode("latin-1")

    def on_body(self, data: bytes) -> None:
        self.body.append(data)

    def on_message_complete(self) -> None:
        body = b"".join(self.body)
        if not self.url.endswith(b"/chat/completions"):
            respond(Exchange(self.transport, self.writable), *_control(self.stub, self.url, body))
            return
        stub, stats = self.stub, self.stub.stats
        stats.requests += 1
        stats.in_flight += 1
        stats.max_in_flight = max(stats.max_in_flight, stats.in_flight)
        stub.headers = self.headers
        request = _DECODER.decode(body)
        stub.seen.append(request)
        self.exchange = exchange = Exchange(self.transport, self.writable, partial(self._ended, stats))
        if stub.latency_seconds:
            asyncio.get_running_loop().call_later(stub.latency_seconds, stub.decide, request, exchange)
        else:
            stub.decide(request, exchange)

    def _ended(self, stats: Stats, sent: int) -> None:
        self.exchange = None
        stats.in_flight -= 1
        stats.bytes_sent += sent


_DECODER = msgspec.json.Decoder(Request)


def _control(stub: StubModel, url: bytes, body: bytes) -> tuple[bytes, int]:
    if url == b"/__stats":
        return json.dumps(asdict(stub.stats)).encode(), 200
    if url == b"/__reset":
        stub.reset()
    elif url == b"/__script":
        for rule in json.loads(body):
            stub.script(**rule)
    elif url.endswith(b"/models"):
        return b'{"object":"list","data":[{"id":"stub","object":"model"}]}', 200
    else:
        return b'{"error":{"message":"no such path"}}', 404
    return b"{}", 200


@dataclass(frozen=True)
class StubProcess:
    """A stub in a process of its own."""

    base_url: str

    def control(self, path: str, data: Any = None) -> Any:
        """POST ``data`` to ``/__script`` or ``/__reset``, or GET ``/__stats``."""
        url = self.base_url.removesuffix("/v1") + path
        body = None if data is None else json.dumps(data).encode()
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(url, data=body, timeout=10) as answer:
            return json.load(answer)


@contextmanager
def stub_process(latency_ms: float = 0) -> Iterator[StubProcess]:
    """Run ``python -m tests.stub_model`` for as long as the block lasts."""
    command = [sys.executable, "-m", "tests.stub_model", "--latency-ms", str(latency_ms)]
    root = Path(__file__).resolve().parents[1]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        try:
            assert process.stdout is not None
            yield StubProcess(process.stdout.readline().split()[-1])
        finally:
            process.terminate()


async def _serve(port: int, latency_ms: float) -> None:
    async with StubModel(latency_ms / 1000, port=port) as stub:
        print(f"listening on {stub.base_url}", flush=True)  # noqa: T201 - the parent process reads it
        await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A scripted judge endpoint on loopback.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency-ms", type=float, default=0)
    arguments = parser.parse_args()
    try:
        import uvloop

        run: Callable[[Any], None] = uvloop.run
    except ImportError:
        run = asyncio.run
    run(_serve(arguments.port, arguments.latency_ms))
