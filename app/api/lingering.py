"""A client that is still sending must be able to hear why it was refused.

Closing a socket with unread bytes in it resets the connection, and a reset throws away the answer that was on its way.
So an answer given before the body was read goes out at once, announces that the connection closes, and what is still
coming is read and thrown away for a while before it does. A client that waits for ``100 Continue`` keeps its body: it
sees the answer and hangs up.
"""

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES = 64 * 1024 * 1024
LONGEST_SECONDS = 10.0


class LingeringClose:
    """Wraps an application; requests without a body pass untouched."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "http" and _has_body(scope):
            exchange = _Exchange(receive, send)
            await self._app(scope, exchange.receive, exchange.send)
        else:
            await self._app(scope, receive, send)


class _Exchange:
    """One request and its answer: knows whether the body has arrived in full."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._body_ended = False
        self._lingers = False

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            self._body_ended = True
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and not self._body_ended:
            self._lingers = True
            message = {**message, "headers": [*message["headers"], (b"connection", b"close")]}
        if self._lingers and message["type"] == "http.response.body" and not message.get("more_body", False):
            await self._send({**message, "more_body": True})
            await self._drain()
            message = {"type": "http.response.body", "body": b""}
        await self._send(message)

    async def _drain(self) -> None:
        drained = 0
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                while not self._body_ended and drained < MOST_BYTES:
                    drained += len((await self.receive()).get("body", b""))
        except TimeoutError:
            return


def _has_body(scope: Scope) -> bool:
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0"))
        for name, value in scope["headers"]
    )
