"""Shares two sandboxed processes fairly between callers, so that whoever brings a hostile text waits for it alone.

Every task first runs in the **quick lane**, where an answer is due within a fraction of a second: three times what the
largest schema takes, so honest work is done there. A task that overruns, or takes the process down, is only suspected:
the process may have been busy or full of what others left behind. It is tried again in the **slow lane**, alone in a
fresh process with the whole time limit; what it does there is its own fault. Its caller waits, and the quick lane
serves the rest meanwhile.

Callers are served in turn, a few tasks at a time, and what is asked together travels together. A thread owns each lane,
so that nothing here blocks an event loop or belongs to one. A caller that is cancelled leaves its answers unread: the
conversation with the process is the lane's and never broken off half way.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from app.sandbox.process import DiedError, OverrunError, Process, SandboxError, Task

Fault: TypeAlias = Literal["timeout", "died"]
Reply: TypeAlias = Mapping[str, Any] | Fault | SandboxError

_TURN = 16
"""Tasks of one caller before it is the next one's turn."""
_BATCH = 64
_BATCH_CHARS = 4 << 20


class Sandbox:
    """Runs tasks in processes that are killed when they take too long or too much."""

    def __init__(
        self, *, quick_seconds: float = 0.15, slow_seconds: float = 2.0, memory_bytes: int = 512 << 20
    ) -> None:
        self._slow = _Lane(slow_seconds, Process(memory_bytes), _settle, alone=True)
        self._quick = _Lane(quick_seconds, Process(memory_bytes), self._suspect)

    async def run(self, tasks: Sequence[Task]) -> list[Mapping[str, Any] | Fault]:
        """Return what became of each task, in order.

        Raises:
            SandboxError: the sandbox does not work, or is closed.
        """
        if not tasks:
            return []
        caller = _Caller(tasks)
        self._quick.add(caller, range(len(tasks)))
        try:
            replies = await caller.future
        finally:
            caller.gone = True
        for reply in replies:
            if isinstance(reply, SandboxError):
                raise reply
        return [reply for reply in replies if not isinstance(reply, SandboxError)]

    async def aclose(self) -> None:
        """End both processes; whoever still waits gets a ``SandboxError``."""
        for lane in (self._quick, self._slow):
            lane.close()
        for lane in (self._quick, self._slow):
            await asyncio.to_thread(lane.join)

    def _suspect(self, ticket: "_Ticket", _: Fault) -> None:
        self._slow.add(ticket.caller, [ticket.index])


class _Caller:
    """One call of ``run``: where its answers are collected and who is told when all are there."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.tasks = tasks
        self.gone = False
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[list[Reply]] = self._loop.create_future()
        self._lock = threading.Lock()
        self._replies: dict[int, Reply] = {}

    def answer(self, index: int, reply: Reply) -> None:
        """Take an answer, from whichever thread."""
        with self._lock:
            self._replies[index] = reply
            complete = len(self._replies) == len(self.tasks)
        if complete and not self.gone:
            try:
                self._loop.call_soon_threadsafe(self._finish)
            except RuntimeError:
                self.gone = True  # its event loop has been closed

    def _finish(self) -> None:
        if not self.future.done():
            self.future.set_result([self._replies[index] for index in range(len(self.tasks))])


@dataclass(frozen=True, slots=True)
class _Ticket:
    caller: _Caller
    index: int

    @property
    def task(self) -> Task:
        return self.caller.tasks[self.index]


def _settle(ticket: _Ticket, fault: Fault) -> None:
    ticket.caller.answer(ticket.index, fault)


class _Lane:
    """A process, the thread that talks to it, and who waits for it.

    Args:
        seconds: within which each answer is due.
        process: the process, which the lane owns from now on.
        blame: is told which ticket was being worked on when the process failed.
        alone: whether each task runs in a fresh process.
    """

    def __init__(
        self, seconds: float, process: Process, blame: Callable[[_Ticket, Fault], None], *, alone: bool = False
    ) -> None:
        self._seconds = seconds
        self._process = process
        self._blame = blame
        self._alone = alone
        self._turn = 1 if alone else _TURN
        self._waiting: deque[tuple[_Caller, deque[int]]] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread: threading.Thread | None = None

    def add(self, caller: _Caller, indices: Sequence[int]) -> None:
        """Let a caller's tasks wait their turn."""
        with self._changed:
            if not self._closed:
                self._waiting.append((caller, deque(indices)))
                if self._thread is None:
                    self._thread = threading.Thread(target=self._work, name="sandbox", daemon=True)
                    self._thread.start()
                self._changed.notify()
                return
        for index in indices:
            caller.answer(index, SandboxError("the sandbox is closed"))

    def close(self) -> None:
        """Stop for good, in the middle of a task if need be."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._process.stop()

    def join(self) -> None:
        """Wait until the thread has ended."""
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        while tickets := self._take():
            try:
                self._serve(deque(tickets))
            finally:
                if self._alone:
                    self._process.kill()
        self._process.kill()
        for caller, indices in self._waiting:
            for index in indices:
                caller.answer(index, SandboxError("the sandbox is closed"))

    def _take(self) -> list[_Ticket]:
        """Wait for work and return the next batch; an empty one means the end."""
        with self._changed:
            while True:
                while not (self._closed or self._waiting):
                    self._changed.wait()
                if self._closed:
                    return []
                if batch := self._batch():
                    return batch

    def _batch(self) -> list[_Ticket]:
        batch: list[_Ticket] = []
        chars = 0
        while self._waiting and len(batch) < (1 if self._alone else _BATCH) and chars < _BATCH_CHARS:
            caller, indices = self._waiting.popleft()
            turn = [] if caller.gone else [indices.popleft() for _ in range(min(self._turn, len(indices)))]
            batch += [_Ticket(caller, index) for index in turn]
            chars += sum(len(caller.tasks[index].own) for index in turn)
            if indices and not caller.gone:
                self._waiting.append((caller, indices))
        return batch

    def _serve(self, tickets: deque[_Ticket]) -> None:
        """Have all tickets answered; one that ends the process does not stop the others."""
        while tickets := deque(ticket for ticket in tickets if not ticket.caller.gone):
            try:
                self._process.ask([ticket.task for ticket in tickets], self._seconds)
                while tickets:
                    reply = self._process.receive(self._seconds)
                    done = tickets.popleft()
                    done.caller.answer(done.index, reply)
            except (OverrunError, DiedError) as error:
                self._process.kill()
                if not self._closed:  # else it was killed for that, and whoever waits is told so
                    self._blame(tickets.popleft(), "timeout" if isinstance(error, OverrunError) else "died")
            except SandboxError as error:
                while tickets:
                    refused = tickets.popleft()
                    refused.caller.answer(refused.index, error)
