"""The program inside the sandbox: it answers questions whose cost nobody can foresee, and may die of any of them.

Before it reads the first request it gives up what it does not need: memory beyond the limit, core dumps, and the right
to open any file or socket, so that a reference in a schema cannot be fetched whatever a library tries.

A request on stdin is a frame holding a JSON header, ``{seconds, shared: [bytes], tasks: [[operation, index in shared,
bytes]]}``, followed by the texts it announces: large ones are thus copied, never encoded as JSON. Each task is
answered on stdout by a frame of its own, in order and at once, so that whoever waits knows which task runs when time
is up.
"""

import json
import resource
import signal
import struct
import sys
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from app.sandbox import schema_check

Operation = Callable[[str, str], Mapping[str, Any]]
"""Takes the text that tasks share (a schema) and the task's own (an instance); returns what becomes a JSON object."""

OPERATIONS: Mapping[str, Operation] = {"schema": schema_check.check}
LENGTH = struct.Struct(">I")


def main(memory_bytes: int) -> None:
    """Answer requests until stdin ends; an empty answer frame says that the child is ready."""
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    for operation in OPERATIONS.values():
        operation("{}", "{}")  # loads what is loaded on first use, while files can still be opened
    _give_up(resource.RLIMIT_AS, memory_bytes)
    _give_up(resource.RLIMIT_CORE, 0)
    _give_up(resource.RLIMIT_NOFILE, 0)
    _answer(answers, {})
    while length := requests.read(LENGTH.size):
        _serve(json.loads(requests.read(*LENGTH.unpack(length))), requests, answers)


def _serve(header: Mapping[str, Any], requests: BinaryIO, answers: BinaryIO) -> None:
    shared = [requests.read(size).decode() for size in header["shared"]]
    tasks = [(OPERATIONS[name], shared[index], requests.read(size)) for name, index, size in header["tasks"]]
    for operation, text, raw in tasks:
        # Whoever asked kills an overrun. Should it be dead itself, this alarm ends a task that nobody waits for.
        signal.setitimer(signal.ITIMER_REAL, header["seconds"] * 2)
        _answer(answers, operation(text, raw.decode()))
        signal.setitimer(signal.ITIMER_REAL, 0)


def _answer(answers: BinaryIO, value: Mapping[str, Any]) -> None:
    body = json.dumps(value).encode()
    answers.write(LENGTH.pack(len(body)) + body)
    answers.flush()


def _give_up(what: int, limit: int) -> None:
    """Lower a limit for good. macOS takes no limit on memory; there the time limit has to do."""
    try:
        resource.setrlimit(what, (limit, limit))
    except (ValueError, OSError):
        if sys.platform != "darwin":
            raise
