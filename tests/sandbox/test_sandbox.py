"""How the sandbox behaves as a process among processes: killed, cancelled, crowded, closed."""

import asyncio
import json
import os
import signal
import time
from pathlib import Path

import pytest

from app.sandbox.checker import SandboxChecker
from app.sandbox.lanes import Sandbox
from app.sandbox.process import SandboxError
from tests.sandbox.conftest import children

GOOD = ('{"type": "object", "required": ["a"]}', '{"a": 1}')
BAD = ('{"type": "object", "required": ["a"]}', "{}")
ENDLESS = (json.dumps({"pattern": "^(?=a)(a|a)+\\1$"}), json.dumps("a" * 60 + "!"))


async def _keywords(checker: SandboxChecker, job: tuple[str, str]) -> list[str]:
    (result,) = await checker.check([job])
    assert result.unusable is None
    return [found.keyword for found in result.violations]


async def test_many_callers_at_once_each_get_their_own_answers(checker: SandboxChecker) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_keywords(checker, BAD if n % 2 else GOOD)) for n in range(500)]
    assert [task.result() for task in tasks] == [["required"] if n % 2 else [] for n in range(500)]


async def test_others_are_served_while_hostile_jobs_wait_for_their_end() -> None:
    checker = SandboxChecker(Sandbox(quick_seconds=0.05, slow_seconds=20))
    await checker.check([GOOD])
    hostile = [asyncio.create_task(checker.check([ENDLESS])) for _ in range(3)]
    await asyncio.sleep(0)
    async with asyncio.timeout(10):
        for _ in range(20):
            assert await _keywords(checker, BAD) == ["required"]
    assert not any(task.done() for task in hostile)
    await checker.aclose()
    assert all(isinstance(end, SandboxError) for end in await asyncio.gather(*hostile, return_exceptions=True))


async def test_a_long_list_does_not_keep_a_short_one_waiting(checker: SandboxChecker) -> None:
    order: list[str] = []

    async def ask(name: str, count: int) -> None:
        await checker.check([GOOD] * count)
        order.append(name)

    async with asyncio.TaskGroup() as group:
        group.create_task(ask("long", 5000))
        group.create_task(ask("short", 1))
    assert order == ["short", "long"]


async def test_a_child_killed_from_outside_costs_no_answer(checker: SandboxChecker) -> None:
    before = children()
    await checker.check([GOOD])
    (first,) = children() - before
    os.kill(first, signal.SIGKILL)
    assert await _keywords(checker, BAD) == ["required"]
    jobs = asyncio.create_task(checker.check([BAD] * 3000))
    killed = 0
    while not jobs.done():
        for pid in children() - before:  # at first there may be none: the one before it has been killed
            os.kill(pid, signal.SIGKILL)
            killed += 1
            break
        await asyncio.sleep(0.2 if killed else 0.005)
    assert killed
    answered = [result for result in await jobs if result.unusable is None]
    assert len(answered) >= 3000 - killed
    assert all(result.violations for result in answered)


async def test_a_cancelled_caller_leaves_the_others_in_step(checker: SandboxChecker) -> None:
    await checker.check([GOOD])
    for job, seconds in ((ENDLESS, 0.02), (GOOD, 0), (BAD, 0)):
        task = asyncio.create_task(checker.check([job] * 50))
        await asyncio.sleep(seconds)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [await _keywords(checker, each) for each in (BAD, GOOD, BAD)] == [["required"], [], ["required"]]


async def test_a_cancelled_caller_does_not_wait_for_its_job() -> None:
    checker = SandboxChecker(Sandbox(quick_seconds=20, slow_seconds=20))
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await checker.check([ENDLESS])
    await checker.aclose()
    assert time.monotonic() - began < 10


async def test_nothing_is_started_before_it_is_needed_and_nothing_is_left_behind() -> None:
    before = children()
    checker = SandboxChecker(Sandbox(quick_seconds=0.05, slow_seconds=0.1))
    assert children() == before
    await checker.check([ENDLESS, GOOD])
    assert len(children() - before) == 1
    await checker.aclose()
    assert children() == before


async def test_closing_ends_what_is_under_way_at_once() -> None:
    checker = SandboxChecker(Sandbox(quick_seconds=20, slow_seconds=20))
    await checker.check([GOOD])
    waiting = asyncio.create_task(checker.check([ENDLESS, GOOD]))
    await asyncio.sleep(0.05)
    began = time.monotonic()
    await checker.aclose()
    with pytest.raises(SandboxError):
        await waiting
    with pytest.raises(SandboxError):
        await checker.check([GOOD])
    await checker.aclose()
    assert time.monotonic() - began < 10


def test_it_outlives_the_event_loops_of_its_callers() -> None:
    checker = SandboxChecker(Sandbox(quick_seconds=0.1, slow_seconds=0.2))

    async def leave_early() -> None:
        task = asyncio.create_task(checker.check([ENDLESS]))
        await asyncio.sleep(0.02)
        task.cancel()

    for _ in range(2):
        assert asyncio.run(_keywords(checker, BAD)) == ["required"]
        asyncio.run(leave_early())
    assert asyncio.run(_keywords(checker, GOOD)) == []
    asyncio.run(checker.aclose())


async def test_the_child_holds_nothing_of_ours(
    checker: SandboxChecker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = children()
    monkeypatch.setenv("FORENSIC_SECRET_KEY", "not-for-the-child")
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        await checker.check([GOOD])
        (pid,) = children() - before
        place = Path(f"/proc/{pid}")
        names = {entry.partition(b"=")[0] for entry in (place / "environ").read_bytes().split(b"\0")}
        assert names <= {b"", b"LD_LIBRARY_PATH"}
        assert {int(entry.name) for entry in (place / "fd").iterdir()} == {0, 1, 2}
    limits = (place / "limits").read_text()
    assert "Max open files            0                    0" in limits
    assert f"Max address space         {512 << 20}            {512 << 20}" in limits


async def test_large_texts_do_not_block_the_event_loop(checker: SandboxChecker) -> None:
    await checker.check([GOOD])
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        last = time.monotonic()
        while True:
            await asyncio.sleep(0.002)
            now = time.monotonic()
            longest, last = max(longest, now - last), now

    watcher = asyncio.create_task(watch())
    text = json.dumps("é" * 8_000_000, ensure_ascii=False)
    await checker.check([('{"type": "array"}', text)])
    watcher.cancel()
    assert longest < 0.25
