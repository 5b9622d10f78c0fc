"""One sandboxed process, seen from outside: started, asked, and killed as soon as it does anything unexpected.

The child gets an empty environment, no file of ours but its two pipes, and a session of its own, so that an interrupt
typed at the terminal is ours to handle. All calls block; a thread owns each process.
"""

import itertools
import json
import os
import select
import struct
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_STARTS = 3
_START_SECONDS = 20.0
_SEND_SECONDS = 20.0
_LONGEST_ANSWER_BYTES = 8 << 20
_ENCODED_CHARS = 1 << 20
"""A text is encoded piece by piece, so that the interpreter can run other threads in between."""
_LENGTH = struct.Struct(">I")
_PROGRAM = "import sys; sys.path += sys.argv[2:]; from app.sandbox.child import main; main(int(sys.argv[1]))"


class SandboxError(Exception):
    """The sandbox itself does not work: its process cannot be started, or it has been closed."""


class OverrunError(Exception):
    """The child did not answer in time."""


class DiedError(Exception):
    """The child is gone: out of memory, crashed, or broken in any other way."""


@dataclass(frozen=True, slots=True)
class Task:
    """One question: an operation on a text that other tasks may share (a schema) and one of its own (an instance)."""

    op: str
    shared: str
    own: str


class Process:
    """A process that answers tasks, one request at a time. It starts when first asked."""

    def __init__(self, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self._popen: subprocess.Popen[bytes] | None = None
        self._received = bytearray()
        self._stopped = False

    def ask(self, tasks: Sequence[Task], seconds: float) -> None:
        """Hand over tasks; ``receive`` their answers in order, each within ``seconds``.

        Raises:
            DiedError: the child is gone.
            OverrunError: it takes nothing in.
            SandboxError: it cannot be started, or has been stopped.
        """
        if self._stopped:
            raise SandboxError("the sandbox is closed")
        if self._popen is None:
            self._start()
        shared = list(dict.fromkeys(task.shared for task in tasks))
        position = {text: index for index, text in enumerate(shared)}
        texts = [_encoded(text) for text in (*shared, *(task.own for task in tasks))]
        sizes = [sum(map(len, pieces)) for pieces in texts]
        header = {
            "seconds": seconds,
            "shared": sizes[: len(shared)],
            "tasks": [
                (task.op, position[task.shared], size) for task, size in zip(tasks, sizes[len(shared) :], strict=True)
            ],
        }
        self._send([_frame(header), *itertools.chain.from_iterable(texts)])

    def receive(self, seconds: float) -> Mapping[str, Any]:
        """Return the next answer.

        Raises:
            DiedError: the child is gone.
            OverrunError: there was no answer within ``seconds``.
        """
        deadline = time.monotonic() + seconds
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size, deadline))
        if length > _LONGEST_ANSWER_BYTES:
            raise DiedError("an answer is impossibly long")
        try:
            answer = json.loads(self._read(length, deadline))
        except ValueError as error:
            raise DiedError("an answer is not JSON") from error
        if not isinstance(answer, dict):
            raise DiedError("an answer is not an object")
        return answer

    def kill(self) -> None:
        """End the process at once and leave no zombie; the next ``ask`` starts another."""
        popen, self._popen = self._popen, None
        self._received.clear()
        if popen is None:
            return
        popen.kill()
        popen.wait()
        for pipe in (popen.stdin, popen.stdout):
            if pipe is not None:
                pipe.close()

    def stop(self) -> None:
        """End it for good, from whichever thread: whoever waits for an answer finds the process dead."""
        self._stopped = True
        popen = self._popen
        if popen is not None:
            popen.kill()

    def _start(self) -> None:
        paths = dict.fromkeys(str(_library(name)) for name in ("app", "jsonschema_rs"))
        command = [sys.executable, "-I", "-S", "-c", _PROGRAM, str(self._memory_bytes), *paths]
        for attempt in range(1, _STARTS + 1):  # a crowded machine may kill one at any time
            try:
                self._launch(command)
            except (OSError, DiedError, OverrunError) as error:
                self.kill()
                if self._stopped or attempt == _STARTS:
                    raise SandboxError("the sandbox process does not start") from error
            else:
                return

    def _launch(self, command: Sequence[str]) -> None:
        self._popen = subprocess.Popen(  # noqa: S603 - our own interpreter and program
            command,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            cwd="/",
            start_new_session=True,
        )
        if self._stopped:  # it was not there yet to be killed
            self._popen.kill()
        os.set_blocking(self._fd("stdin"), False)
        self.receive(_START_SECONDS)

    def _send(self, pieces: Iterable[bytes]) -> None:
        deadline = time.monotonic() + _SEND_SECONDS
        pipe = self._fd("stdin")
        for piece in pieces:
            rest = memoryview(piece)
            while rest:
                _wait(pipe, select.POLLOUT, deadline)
                try:
                    rest = rest[os.write(pipe, rest) :]
                except BlockingIOError:
                    continue
                except OSError as error:
                    raise DiedError("the child is gone") from error

    def _read(self, size: int, deadline: float) -> bytes:
        pipe = self._fd("stdout")
        while len(self._received) < size:
            _wait(pipe, select.POLLIN, deadline)
            read = os.read(pipe, 1 << 16)
            if not read:
                raise DiedError("the child is gone")
            self._received += read
        found = bytes(self._received[:size])
        del self._received[:size]
        return found

    def _fd(self, name: str) -> int:
        if self._popen is None:
            raise DiedError("the child is not running")
        fd: int = getattr(self._popen, name).fileno()
        return fd


def _wait(fd: int, event: int, deadline: float) -> None:
    poll = select.poll()
    poll.register(fd, event)
    if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
        raise OverrunError


def _frame(value: Any) -> bytes:
    body = json.dumps(value).encode()
    return _LENGTH.pack(len(body)) + body


def _encoded(text: str) -> list[bytes]:
    return [
        text[start : start + _ENCODED_CHARS].encode(errors="replace") for start in range(0, len(text), _ENCODED_CHARS)
    ]


def _library(name: str) -> Path:
    """Return the directory that a package is imported from."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise SandboxError(f"{name} is not installed")
    return Path(spec.origin).parent.parent


def _environment() -> dict[str, str]:
    """Return an environment that holds nothing of ours, only what a shared interpreter needs to be found."""
    if not sysconfig.get_config_var("Py_ENABLE_SHARED"):
        return {}
    return {"LD_LIBRARY_PATH": str(Path(sys.base_prefix) / "lib")}
