"""One request as a server passes it on, message by message, for what no client library can be made to do."""

import asyncio
from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI

from tests.api.conftest import PATH
from tests.api.stand_ins import KEY


async def exchange(
    app: FastAPI,
    messages: Sequence[dict[str, Any]],
    *,
    method: str = "POST",
    path: str = PATH,
    query: bytes = b"",
    key: str = KEY,
    log: list[str] | None = None,
) -> list[dict[str, Any]]:
    """Run one request and return what was sent; after ``messages`` the client is silent.

    ``log`` gets the types of all messages in both directions, in order.
    """
    left = list(messages)
    sent: list[dict[str, Any]] = []
    happened = [] if log is None else log

    async def receive() -> dict[str, Any]:
        if left:
            happened.append(left[0]["type"])
            return left.pop(0)
        await asyncio.sleep(60)
        raise AssertionError

    async def send(message: Any) -> None:
        happened.append(message["type"])
        sent.append(message)

    headers = [(b"authorization", f"Bearer {key}".encode()), (b"content-type", b"application/json")]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "scheme": "http",
        "query_string": query,
        "headers": [*headers, *([(b"transfer-encoding", b"chunked")] if method == "POST" else [])],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
    }
    async with app.router.lifespan_context(app):
        await app(scope, receive, send)
    return sent
