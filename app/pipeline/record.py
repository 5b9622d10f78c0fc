"""Record: verdicts are stored as they come, in as few transactions as the database's pace allows.

While one batch is being written the next one gathers, so that a conversation whose judges all answer at once costs
two or three transactions, and one whose judges take minutes loses at most the verdict under way.
"""

import asyncio
import contextlib
from types import TracebackType

from app.findings.model import Verdict
from app.pipeline.errors import StoreUnavailableError
from app.pipeline.ports import Store
from app.pipeline.values import Lease

_PENDING = 500
"""Verdicts waiting to be written before judges have to wait too."""
_RETRIES = 5
_FLUSH_SECONDS = 0.8


class LeaseLostError(Exception):
    """The conversation belongs to another worker now, or it was canceled or deleted; nothing more may be written."""


class Recorder:
    """Writes verdicts in the background. Leaving it waits until everything is stored.

    Raises (from ``add`` or on leaving):
        LeaseLostError: the lease is no longer ours.
        StoreUnavailableError: the database stayed away through several retries.
    """

    def __init__(self, store: Store, lease: Lease) -> None:
        self._store = store
        self._lease = lease
        self._queue: asyncio.Queue[Verdict | None] = asyncio.Queue(_PENDING)
        self._task: asyncio.Task[None] | None = None
        self.stored = 0
        """Verdicts written so far."""

    async def __aenter__(self) -> "Recorder":
        self._task = asyncio.create_task(self._write())
        return self

    async def add(self, verdict: Verdict) -> None:
        """Hand over a verdict."""
        await self._put(verdict)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        task = self._running()
        try:
            if kind is None:
                await self._put(None)
                await task
            elif issubclass(kind, asyncio.CancelledError) and not task.done():
                await self._flush(task)
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def _flush(self, task: "asyncio.Task[None]") -> None:
        """Store what is paid for before the work is given back, if that takes no time to speak of."""
        with contextlib.suppress(LeaseLostError, StoreUnavailableError, TimeoutError):
            async with asyncio.timeout(_FLUSH_SECONDS):
                await self._put(None)
                await task

    async def _put(self, verdict: Verdict | None) -> None:
        """Queue it, unless the writer has died: then raise what killed it rather than wait for ever."""
        task = self._running()
        putting = asyncio.ensure_future(self._queue.put(verdict))
        try:
            await asyncio.wait({putting, task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not putting.done():
                putting.cancel()
        if task.done():
            task.result()

    def _running(self) -> asyncio.Task[None]:
        if self._task is None:
            raise RuntimeError("a Recorder is used as an async context manager")
        return self._task

    async def _write(self) -> None:
        more = True
        while more:
            batch = [await self._queue.get()]
            while not self._queue.empty():
                batch.append(self._queue.get_nowait())
            verdicts = [verdict for verdict in batch if verdict is not None]
            more = len(verdicts) == len(batch)
            if verdicts:
                await self._save(verdicts)

    async def _save(self, verdicts: list[Verdict]) -> None:
        for attempt in range(_RETRIES):
            try:
                async with self._store.begin() as tx:
                    if not await tx.save_verdicts(self._lease, verdicts):
                        raise LeaseLostError
            except StoreUnavailableError:
                if attempt == _RETRIES - 1:
                    raise
                await asyncio.sleep(0.2 * 2**attempt)
            else:
                self.stored += len(verdicts)
                return
