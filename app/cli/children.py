"""Child processes that are kept running, and that end with this one whatever happens to it.

A child that ends is started again, after a pause that doubles while it keeps ending soon. Children are sessions of
their own, so that Ctrl-C in a terminal reaches only this process, which then ends them in order.
"""

import asyncio
import contextlib
import logging
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import IO, TypeAlias

from app.cli import tether
from app.cli.failure import CommandError

Begin: TypeAlias = Callable[[], Awaitable[Process]]
log = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
HEALTHY_SECONDS = 30.0
"""A child that ran this long did not fail at its start: the pause begins anew."""


async def start(program: Sequence[str], log_file: IO[str] | None) -> Process:
    """Start a program that cannot outlive this process. Its output goes to ``log_file``, else to stderr."""
    # The pipe is never written to: its other end closing is what ends the child where the kernel does not.
    return await asyncio.create_subprocess_exec(
        *tether.command(program),
        stdin=PIPE,
        stdout=log_file or DEVNULL,
        stderr=log_file,
        start_new_session=True,
    )


@contextlib.asynccontextmanager
async def kept_running(name: str, begin: Begin, *, patience_seconds: float = 10.0) -> AsyncIterator[None]:
    """Keep what ``begin`` starts running while inside; then ask it to end, and kill it when patience runs out."""
    newest = [await begin()]
    keeper = asyncio.create_task(_keep(name, newest, begin))
    try:
        yield
    finally:
        keeper.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await keeper
        await end(newest[0], patience_seconds)


async def _keep(name: str, newest: list[Process], begin: Begin) -> None:
    """Start another whenever the newest ended, for ever."""
    pause = FIRST_PAUSE_SECONDS
    while True:
        started = time.monotonic()
        code = await newest[0].wait()
        if time.monotonic() - started > HEALTHY_SECONDS:
            pause = FIRST_PAUSE_SECONDS
        log.warning("the %s ended with code %s; starting it again in %.1f s", name, code, pause)
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        with contextlib.suppress(CommandError):  # then the one that ended is found ended again, after a longer pause
            newest[0] = await begin()


async def end(process: Process, patience_seconds: float) -> None:
    """Ask a process to end, if it has not by itself; kill it when patience runs out."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(patience_seconds):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
