"""The service on one machine: the API in this process, a private Redis and a worker as children tied to it.

What is left out: the Redis when FORENSIC_REDIS_URL names one, the worker when another runs it. With no Redis at all the
API process judges by itself, and there is no worker either.
"""

import asyncio
import contextlib
import errno
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import IO

import uvicorn
from redis.asyncio import Redis
from redis.exceptions import RedisError

from app import wiring
from app.cli.children import kept_running, start
from app.cli.failure import CommandError
from app.cli.private_redis import find_redis_server, private_redis
from app.settings import Settings, export_settings, read_settings

BACKLOG = 2048
GRACE_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Running:
    """A service that answers. ``queue`` tells people how work reaches the judges; ``ended`` is its server's task."""

    url: str
    settings: Settings
    queue: str
    ended: asyncio.Task[None]


class Server(uvicorn.Server):
    """A uvicorn server that leaves signals to whoever runs it, and says when it answers."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.answers = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and tell. When that fails (the log says why) end quietly: uvicorn would end the process."""
        try:
            await super().startup(sockets)
        except SystemExit:
            self.should_exit = True
        else:
            self.answers.set()


@contextlib.asynccontextmanager
async def running(settings: Settings, *, with_worker: bool, log_file: IO[str] | None = None) -> AsyncIterator[Running]:
    """Run the service while inside. ``settings`` are those of the environment: the API reads them there again.

    Raises:
        CommandError: the port is taken, or a part does not start.
    """
    listener = listen(settings.host, settings.port)
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(listener.close)
        settings.make_data_dir()
        await wiring.migrate(settings)
        settings, queue = await _queue(settings, log_file, stack, with_worker=with_worker)
        if with_worker and settings.redis_url is not None:

            async def begin() -> Process:
                return await start([sys.executable, "-m", "app.worker"], log_file)

            await stack.enter_async_context(kept_running("worker", begin))
        ended = await stack.enter_async_context(_serving(listener))
        yield Running(base_url(settings.host, listener), settings, queue, ended)


async def _queue_of(url: str, *, with_worker: bool) -> str:
    """Tell how work goes through a Redis that others run: whether it answers, and who takes it from there."""
    answers = "the Redis of FORENSIC_REDIS_URL"
    try:
        async with Redis.from_url(url, socket_timeout=2, socket_connect_timeout=2) as client:
            await client.ping()
    except (RedisError, OSError) as error:
        answers += f", which does not answer now ({type(error).__name__})"
    return answers if with_worker else f"{answers}; no worker was started here, `forensic worker` starts one"


async def _queue(
    settings: Settings, log_file: IO[str] | None, stack: contextlib.AsyncExitStack, *, with_worker: bool
) -> tuple[Settings, str]:
    """Find or start a Redis, and return settings that name it, where there is one."""
    if settings.redis_url is not None:
        return settings, await _queue_of(settings.redis_url.get_secret_value(), with_worker=with_worker)
    program = find_redis_server()
    if program is None:
        return settings, "none: no redis-server found, so the API process judges by itself"
    url = await stack.enter_async_context(private_redis(program, settings.data_dir, log_file))
    export_settings({"redis_url": url})
    return read_settings(), f"a private Redis ({program})"


@contextlib.asynccontextmanager
async def _serving(listener: socket.socket) -> AsyncIterator[asyncio.Task[None]]:
    server = Server(
        uvicorn.Config(
            "app.main:create_app",
            factory=True,
            log_config=None,
            lifespan="on",
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
    )
    task = asyncio.create_task(server.serve([listener]))
    answers = asyncio.create_task(server.answers.wait())
    try:
        await asyncio.wait({task, answers}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            raise CommandError("The API does not start; the log above says why.")
        yield task
    finally:
        answers.cancel()
        server.should_exit = True
        await asyncio.gather(task, return_exceptions=True)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket, so that a taken port is known before anything is started.

    Raises:
        CommandError: the address cannot be listened on.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise CommandError(f"FORENSIC_HOST: {host} is no address of this machine ({error.strerror}).") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise CommandError(
                f"Port {port} on {host} is in use. Stop what listens there, or set FORENSIC_PORT to another "
                "(0 takes a free one)."
            ) from None
        raise CommandError(
            f"FORENSIC_HOST, FORENSIC_PORT: cannot listen on {host}, port {port}: {error.strerror}."
        ) from None
    return listener


def base_url(host: str, listener: socket.socket) -> str:
    """Return the URL under which this machine reaches the listener."""
    port = listener.getsockname()[1]
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  # compared with, not bound to
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"
