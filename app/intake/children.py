"""A few warm processes that take one job at a time; one that dies or overruns is replaced."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import app
from app.intake.child import LONGEST_JOB_SECONDS
from app.intake.jobs import LENGTH_BYTES, Job, Reply, decode_reply, encode

_ROOT = str(Path(app.__file__).resolve().parents[1])
_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from app.intake.child import main; main()"
_PIPE_BYTES = 1 << 20
_GRACE_SECONDS = 5.0
_ATTEMPTS = 2
"""What killed a process the first time, such as a host short of memory, may be over; a second death is the job's."""


class ChildLostError(Exception):
    """The process that did the job died or took too long, twice."""


class Children:
    """A pool of processes, started when they are needed and kept."""

    def __init__(self, processes: int) -> None:
        self._free = asyncio.Semaphore(processes)
        self._idle: list[Process] = []
        self._ended: set[Process] = set()

    async def start(self) -> None:
        """Start a process, unless one is there."""
        if not self._idle:
            self._idle.append(await _started())

    async def aclose(self) -> None:
        """End the processes that have nothing to do, and wait until all are gone."""
        while self._idle:
            self._end(self._idle.pop())
        for process in self._ended:
            await process.wait()

    async def ask(self, job: Job) -> Reply:
        """Have a job done.

        Raises:
            ChildLostError: it killed two processes, or took too long.
        """
        question = encode(job)
        async with self._free:
            for _ in range(_ATTEMPTS):
                try:
                    return decode_reply(await self._answer(question))
                except (asyncio.IncompleteReadError, ConnectionError):
                    continue
                except TimeoutError:
                    break
        raise ChildLostError

    async def _answer(self, question: bytes) -> bytes:
        process = self._idle.pop() if self._idle else await _started()
        try:
            async with asyncio.timeout(LONGEST_JOB_SECONDS + _GRACE_SECONDS):
                answer = await _exchange(process, question)
        except (
            BaseException
        ):  # in the middle of a job, whoever gave up on it: nobody could tell whose answer comes next
            self._end(process)
            raise
        self._idle.append(process)
        return answer

    def _end(self, process: Process) -> None:
        if process.returncode is None:
            process.kill()
        self._ended = {each for each in self._ended if each.returncode is None} | {process}


async def _started() -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", _BOOT, _ROOT, stdin=PIPE, stdout=PIPE, limit=_PIPE_BYTES
    )


async def _exchange(process: Process, question: bytes) -> bytes:
    if process.stdin is None or process.stdout is None:
        raise ConnectionError("a process without pipes")
    process.stdin.write(len(question).to_bytes(LENGTH_BYTES))
    process.stdin.write(question)
    await process.stdin.drain()
    length = int.from_bytes(await process.stdout.readexactly(LENGTH_BYTES))
    return await process.stdout.readexactly(length)
