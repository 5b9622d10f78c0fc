"""Answers without an end in sight: server-sent events and JSON lines, in bounded memory.

Both are async iterators over the database, so what matters is that they are closed at once, in their own task, when the
client goes away: an iterator left to the garbage collector would sit on its transaction.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.api import wire
from app.evaluation.model import Evaluation
from app.pipeline.read import Exported

_CHUNK_BYTES = 64 * 1024
_HEARTBEAT = b": still here\n\n"
_T = TypeVar("_T")


class Stream(Response):
    """A response made of the chunks of an iterator, closed as soon as the client is gone."""

    def __init__(self, chunks: AsyncIterator[bytes], media_type: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(None, 200, headers, media_type)
        del self.headers["content-length"]
        self._chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the chunks."""
        await _unless_gone(self._send(send), receive)

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async with _closing(self._chunks):
            async for chunk in self._chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def while_connected(request: Request, waiting: Awaitable[_T]) -> _T:
    """Return what is waited for, giving up when the client does.

    Raises:
        ClientDisconnect: nobody is there to be answered any more.
    """
    return await _unless_gone(waiting, request.receive)


async def started(source: AsyncIterator[_T]) -> AsyncIterator[_T]:
    """Return the same iterator with its first element taken already: what that raises can still be answered."""
    first = await anext(source)

    async def both() -> AsyncIterator[_T]:
        async with _closing(source):
            yield first
            async for each in source:
                yield each

    return both()


async def events(states: AsyncIterator[Evaluation], heartbeat_seconds: float) -> AsyncIterator[bytes]:
    """Yield each state as a server-sent event, and a comment whenever it has been quiet for too long."""
    upcoming: asyncio.Future[Evaluation] | None = None
    async with _closing(states):
        try:
            while True:
                upcoming = upcoming or asyncio.ensure_future(anext(states))
                await asyncio.wait({upcoming}, timeout=heartbeat_seconds)
                if not upcoming.done():
                    yield _HEARTBEAT
                    continue
                try:
                    state = upcoming.result()
                except StopAsyncIteration:
                    return
                upcoming = None
                yield b"event: evaluation\ndata: " + wire.encode(wire.evaluation(state)) + b"\n\n"
        finally:
            if upcoming is not None:
                upcoming.cancel()
                await asyncio.wait({upcoming})


async def json_lines(objects: AsyncIterator[Exported]) -> AsyncIterator[bytes]:
    """Yield one object a line, many lines a chunk."""
    chunk = bytearray()
    async with _closing(objects):
        async for one in objects:
            chunk += wire.json_line(one)
            if len(chunk) >= _CHUNK_BYTES:
                yield bytes(chunk)
                chunk.clear()
    if chunk:
        yield bytes(chunk)


async def _unless_gone(work: Awaitable[_T], receive: Receive) -> _T:
    working = asyncio.ensure_future(work)
    listening = asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait({working, listening}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        for task in (working, listening):
            task.cancel()
        await asyncio.wait({working, listening})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


@asynccontextmanager
async def _closing(source: AsyncIterator[object]) -> AsyncIterator[None]:
    try:
        yield
    finally:
        if isinstance(source, AsyncGenerator):
            await source.aclose()
