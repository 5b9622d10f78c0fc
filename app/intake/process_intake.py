"""The `Intake` port: small bodies are read at once, large ones in another process, never too many bytes at a time."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from pathlib import Path

import zstandard

from app.evaluation.model import NewConversation
from app.evaluation.reading import Reading, Refusal, read
from app.intake.children import ChildLostError, Children
from app.intake.jobs import Accepted, AdmitJob, Presented, PresentJob, Refused
from app.intake.leftovers import sweep
from app.intake.packing import frames, read_frames, unpack
from app.intake.presenting import present
from app.pipeline.errors import BusyError, Problem, RefusedError
from app.pipeline.values import Admitted, Body, Rules
from app.transcripts import pointer
from app.transcripts.model import Violation, Warning_

INLINE_BYTES = 128 * 1024
"""Larger bodies and conversations go to another process; these take the event loop some ten milliseconds at worst."""
_RETRY_SECONDS = 5


class ProcessIntake:
    """Reads bodies and presents conversations without blocking the event loop.

    Processes start when they are needed and stay; ``aclose`` ends them.

    Args:
        in_flight_bytes: bodies that together are larger are not read at the same time, unless there is only one.
        directory: where the rows of large bodies wait to be stored; None: the system's directory for temporary files.
        processes: how many large bodies are read at the same time.
    """

    def __init__(self, *, in_flight_bytes: int, directory: Path | None = None, processes: int = 2) -> None:
        self._limit = in_flight_bytes
        self._in_flight = 0
        self._directory = directory
        self._children = Children(processes)
        sweep(directory)

    async def start(self) -> None:
        """Start a first process, so that the first large body need not wait for it."""
        await self._children.start()

    async def aclose(self) -> None:
        """End all processes."""
        await self._children.aclose()

    @contextlib.asynccontextmanager
    async def admit(self, body: Body, rules: Rules) -> AsyncIterator[Admitted]:
        """Validate a whole body; see the port."""
        with self._weighed(body.size), contextlib.ExitStack() as files:
            if body.size <= INLINE_BYTES:
                reading = _read_here(body, rules)
                accepted = Accepted(reading.request, len(reading.conversations), reading.warnings)
                packed = frames(reading)
            else:
                file = files.enter_context(tempfile.NamedTemporaryFile(dir=self._directory, prefix="forensic-rows-"))
                accepted = await self._read_there(body, rules, file.name)
                packed = read_frames(file.file)
            async with contextlib.aclosing(_unpacked(packed)) as stream:
                yield Admitted(accepted.request, accepted.total, accepted.warnings, stream)

    async def present(self, stored: bytes, known: Sequence[Warning_] = ()) -> bytes:
        """Return the JSON object of a stored conversation; see the port."""
        if zstandard.get_frame_parameters(stored).content_size <= INLINE_BYTES:
            return present(stored, known)
        try:
            reply = await self._children.ask(PresentJob(stored, tuple(known)))
        except ChildLostError as error:
            raise BusyError(_RETRY_SECONDS) from error
        if not isinstance(reply, Presented):
            raise TypeError("another job's answer")
        return reply.document

    @contextlib.contextmanager
    def _weighed(self, size: int) -> Iterator[None]:
        if self._in_flight and self._in_flight + size > self._limit:
            raise BusyError
        self._in_flight += size
        try:
            yield
        finally:
            self._in_flight -= size

    async def _read_there(self, body: Body, rules: Rules, rows_path: str) -> Accepted:
        job = AdmitJob(
            rows_path,
            dict(rules.judges),
            tuple(rules.models),
            rules.webhook_http_hosts,
            path=body.path,
            data=body.data or b"",
        )
        try:
            reply = await self._children.ask(job)
        except ChildLostError as error:
            raise BusyError(_RETRY_SECONDS) from error
        if isinstance(reply, Refused):
            raise _refused(reply)
        if not isinstance(reply, Accepted):
            raise TypeError("another job's answer")
        return reply


def _read_here(body: Body, rules: Rules) -> Reading:
    data = body.data if body.data is not None else Path(body.path or "").read_bytes()
    reading = read(data, rules)
    if isinstance(reading, Refusal):
        raise _refused(reading)
    return reading


async def _unpacked(packed: Iterator[bytes]) -> AsyncGenerator[Sequence[NewConversation], None]:
    for frame in packed:
        yield unpack(frame)
        await asyncio.sleep(0)  # others have their turn between two frames


def _refused(refusal: Refusal | Refused) -> RefusedError:
    problems = [
        Problem(
            pointer.build(each.loc),
            each.code,
            each.message,
            _conversation(each),
            refusal.line,
            refusal.column,
        )
        for each in refusal.violations
    ]
    return RefusedError(problems, refusal.count)


def _conversation(violation: Violation) -> int | None:
    """Return the index of the conversation that a violation is about."""
    if violation.loc[:1] != ("conversations",) or len(violation.loc) == 1:
        return None
    index = violation.loc[1]
    return index if isinstance(index, int) else None
