"""The doorbell without Redis: the process that hears it does the work, by the very function an arq job would call."""

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Sequence

from app.pipeline.errors import QueueUnavailableError
from app.queueing.stopping import stop

_log = logging.getLogger(__name__)


class InProcessQueue:
    """The `Queue` port inside one process; at most ``max_jobs`` conversations are judged at once."""

    def __init__(self, judge_conversation: Callable[[str], Awaitable[None]], max_jobs: int) -> None:
        self._judge = judge_conversation
        self._free = asyncio.Semaphore(max_jobs)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._closed = False

    async def judge(self, conversation_ids: Sequence[str]) -> None:
        """Start judging, or remember to; returns at once.

        Raises:
            QueueUnavailableError: it was closed.
        """
        if self._closed:
            raise QueueUnavailableError("closed")
        for conversation_id in conversation_ids:
            if conversation_id not in self._tasks:
                task = asyncio.create_task(self._run(conversation_id))
                self._tasks[conversation_id] = task
                task.add_done_callback(functools.partial(self._forget, conversation_id))

    def _forget(self, conversation_id: str, _: asyncio.Task[None]) -> None:
        self._tasks.pop(conversation_id, None)

    async def _run(self, conversation_id: str) -> None:
        async with self._free:
            try:
                await self._judge(conversation_id)
            except Exception:  # noqa: BLE001 - nobody awaits this task; the database still knows what is due
                _log.exception("judging %s failed", conversation_id)

    async def length(self) -> int:
        """Return how many conversations wait or are judged. Raises QueueUnavailableError once closed."""
        await self.check()
        return len(self._tasks)

    async def check(self) -> None:
        """Raise QueueUnavailableError once closed."""
        if self._closed:
            raise QueueUnavailableError("closed")

    async def aclose(self) -> None:
        """Stop: what is under way is cancelled, which gives it back to the database."""
        self._closed = True
        await stop(*self._tasks.values())
