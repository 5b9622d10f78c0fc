"""Runs a program that must not outlive the process which asked for it, not even when that one is killed outright.

``python -m app.cli.tether PARENT COMMAND...``: on Linux the kernel is told to kill the program with its parent, and
this process becomes the program. Elsewhere this process stays, and kills the program when the pipe on standard input,
whose other end only the parent holds, reaches its end. So a parent that hands over a pipe is right everywhere.
"""

import ctypes
import os
import platform
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence

_SET_PARENT_DEATH_SIGNAL = 1
_NOT_STARTED = 127


def command(program: Sequence[str]) -> list[str]:
    """Return the command that runs ``program`` tied to this process. Start it from the main thread.

    Linux counts the starting thread as the parent: if that thread ends, the program does.
    """
    return [sys.executable, "-m", "app.cli.tether", str(os.getpid()), *program]


def main() -> int:
    """Become or watch over the program named on the command line."""
    parent, program = int(sys.argv[1]), sys.argv[2:]
    if platform.system() == "Linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the kernel was told
            return _NOT_STARTED
        os.execvp(program[0], program)  # noqa: S606  # no shell is wanted
    return watch(program)


def watch(program: Sequence[str]) -> int:
    """Run the program until it ends or standard input does; pass on the signals that ask it to stop."""
    child = subprocess.Popen(program, stdin=subprocess.DEVNULL)  # noqa: S603  # its own argument
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: child.send_signal(received))
    threading.Thread(target=_kill_at_end_of_input, args=(child,), daemon=True).start()
    return child.wait()


def _kill_at_end_of_input(child: "subprocess.Popen[bytes]") -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    child.kill()


if __name__ == "__main__":
    sys.exit(main())
