"""Receive a body of unknown, claimed or false length without holding it in memory or stalling the loop.

FastAPI would read and parse a declared body before it looks at the key, whole, with no limit and no deadline. Here the
route calls ``received`` once the client is known: small bodies stay in memory, larger ones go to a file piece by piece;
every byte is counted and hashed on its way. Nothing is left behind however the request ends.
"""

import asyncio
import contextlib
import hashlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType

from starlette.requests import Request

from app.api.collaborators import MEBIBYTE, Limits
from app.api.problems import Item, ProblemError
from app.pipeline.errors import Problem, StoreUnavailableError
from app.pipeline.values import Body

_PIECE_BYTES = MEBIBYTE


@contextlib.asynccontextmanager
async def received(request: Request, limits: Limits, spool_dir: Path | None) -> AsyncIterator[Body]:
    """Receive a JSON body; it is there as long as the context is.

    Raises:
        ProblemError: media type or encoding are not acceptable, too long, or too slow.
        ClientDisconnect: the client went away in the middle.
        StoreUnavailableError: there is no room for it.
    """
    _check_media_type(request)
    claimed = request.headers.get("content-length", "")
    if claimed.isdecimal() and int(claimed) > limits.body_bytes:
        raise _too_large(limits)
    async with _Spool(limits, spool_dir) as spool:
        try:
            async with asyncio.timeout(limits.receive_seconds):
                async for chunk in request.stream():
                    await spool.add(chunk)
            body = await spool.body()
        except TimeoutError:
            raise ProblemError(
                "receive_timeout", f"The body did not arrive within {limits.receive_seconds:g} seconds."
            ) from None
        except OSError as error:
            raise StoreUnavailableError("no room for a request body") from error
        yield body


class _Spool:
    """Takes a body in: counts, hashes, and moves it to a file when it grows."""

    def __init__(self, limits: Limits, directory: Path | None) -> None:
        self._limits = limits
        self._directory = directory
        self._size = 0
        self._hash = hashlib.sha256()
        self._pending = bytearray()
        self._file: tempfile._TemporaryFileWrapper[bytes] | None = None
        self._writing: asyncio.Future[None] | None = None

    async def __aenter__(self) -> "_Spool":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._writing is not None:  # a file is not closed while a thread writes to it
            await asyncio.wait({self._writing})
        if self._file is not None:
            self._file.close()

    async def add(self, chunk: bytes) -> None:
        """Take a chunk; one that is longer than a piece goes in piece by piece."""
        self._size += len(chunk)
        if self._size > self._limits.body_bytes:
            raise _too_large(self._limits)
        for start in range(0, len(chunk), _PIECE_BYTES):
            self._pending += memoryview(chunk)[start : start + _PIECE_BYTES]
            if len(self._pending) >= (_PIECE_BYTES if self._file else self._limits.memory_bytes + 1):
                await self._write_out()

    async def body(self) -> Body:
        """Return what was received."""
        if self._file is None:
            data = bytes(self._pending)
            return Body(self._size, hashlib.sha256(data).hexdigest(), data=data)
        await self._write_out()
        return Body(self._size, self._hash.hexdigest(), path=self._file.name)

    async def _write_out(self) -> None:
        piece, self._pending = bytes(self._pending), bytearray()
        # A thread helps here: hashing and writing let go of the interpreter lock, and a slow disk stalls only this.
        self._writing = asyncio.ensure_future(asyncio.to_thread(self._write, piece))
        await asyncio.shield(self._writing)

    def _write(self, piece: bytes) -> None:
        if self._file is None:
            self._file = tempfile.NamedTemporaryFile(dir=self._directory, prefix="forensic-body-")  # noqa: SIM115 - closed in __aexit__
        self._hash.update(piece)
        self._file.write(piece)
        self._file.flush()


def _check_media_type(request: Request) -> None:
    declared = ", ".join(request.headers.getlist("content-type"))  # two of them are none that we know
    media_type, *parameters = [part.strip().lower() for part in declared.split(";")]
    is_json = media_type == "application/json" or (
        media_type.startswith("application/") and media_type.endswith("+json")
    )
    charsets = [value.strip('"') for name, _, value in (p.partition("=") for p in parameters) if name == "charset"]
    if not is_json or any(charset not in {"utf-8", "utf8"} for charset in charsets):
        raise ProblemError("unsupported_media_type", "Send the body as application/json in UTF-8.")
    encodings = {
        part.strip().lower() for line in request.headers.getlist("content-encoding") for part in line.split(",")
    }
    if not encodings <= {"", "identity"}:
        raise ProblemError(
            "unsupported_media_type",
            "Send the body unencoded: what is stored is what was received, byte for byte.",
            headers={"accept-encoding": "identity"},
        )


def idempotency_key(request: Request) -> str | None:
    """Return the request's Idempotency-Key, if it has one.

    Raises:
        ProblemError: it is not 1 to 255 printable ASCII characters, or there are several.
    """
    given = request.headers.getlist("idempotency-key")
    if not given:
        return None
    key = given[0]
    if len(given) > 1 or not 1 <= len(key) <= 255 or not (key.isascii() and key.isprintable()):  # noqa: PLR2004
        message = "must be given once, with 1 to 255 printable ASCII characters"
        item = Item("invalid_header", f"Idempotency-Key {message}", "Idempotency-Key")
        raise ProblemError("invalid_parameter", f"The Idempotency-Key {message}.", items=[item])
    return key


def _too_large(limits: Limits) -> ProblemError:
    message = f"The body is larger than {limits.body_bytes} bytes. Split it: every request makes its own evaluation."
    return ProblemError("body_too_large", message, items=[Problem("", "body_too_large", message)])
