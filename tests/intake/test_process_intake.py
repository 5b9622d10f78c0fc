"""The intake gives the same answer in its own process and in another, and outlives whatever happens to that one."""

import asyncio
import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zstandard

from app.evaluation.model import EvaluationRequest, EvaluationWarning, NewConversation
from app.intake import children, packing
from app.intake.process_intake import INLINE_BYTES, ProcessIntake
from app.pipeline.errors import BusyError, RefusedError
from app.pipeline.values import Body
from tests.evaluation.bodies import CHAT, ITEMS, RULES, body

PADDING = {"role": "user", "content": "x" * INLINE_BYTES}
LONG = {"messages": [PADDING, CHAT["messages"][1]]}

Everything = tuple[EvaluationRequest, tuple[EvaluationWarning, ...], list[NewConversation]]
Start = Callable[..., ProcessIntake]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    async with contextlib.AsyncExitStack() as stack:

        def started(in_flight_bytes: int = 1 << 30) -> ProcessIntake:
            intake = ProcessIntake(in_flight_bytes=in_flight_bytes, directory=tmp_path)
            stack.push_async_callback(intake.aclose)
            return intake

        yield started
    assert not waiting(tmp_path)


def waiting(directory: Path) -> list[str]:
    return [each.name for each in directory.iterdir()]


def in_memory(raw: bytes) -> Body:
    return Body(len(raw), hashlib.sha256(raw).hexdigest(), data=raw)


async def everything(intake: ProcessIntake, raw: bytes) -> Everything:
    async with intake.admit(in_memory(raw), RULES) as admitted:
        batches = [batch async for batch in admitted.batches]
        found = [conversation for batch in batches for conversation in batch]
        assert admitted.total == len(found)
        assert [each.index for each in found] == list(range(len(found)))
        return admitted.request, admitted.warnings, found


async def refusal(intake: ProcessIntake, raw: bytes) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        await everything(intake, raw)
    return caught.value


def own_children() -> set[int]:
    """Return the reading processes of this one."""
    found = set()
    for listed in Path("/proc/self/task").glob("*/children"):
        for pid in listed.read_text().split():
            with contextlib.suppress(OSError):
                if b"app.intake.child" in command_line(int(pid)):
                    found.add(int(pid))
    return found


def command_line(pid: int) -> bytes:
    """Return the arguments of a process; one that has just been started may not show them yet."""
    while not (arguments := Path(f"/proc/{pid}/cmdline").read_bytes()) and is_running(pid):
        time.sleep(0.01)
    return arguments


def is_running(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


async def gone(pid: int) -> None:
    async with asyncio.timeout(10):
        while is_running(pid):
            await asyncio.sleep(0.02)


REQUESTS: list[dict[str, Any]] = [
    {},
    {"name": "n\x00", "metadata": {"a": "b"}, "judges": ["gamma"], "options": {"votes": 5, "max_tokens": 10**15}},
    {
        "target": {"description": "d", "principles": [{"name": "n", "description": "d", "tags": ["t"]}]},
        "webhook": {"url": "https://example.com/", "secret": "whsec_" + "A" * 32},
        "options": {"model": "m-small", "scope": "last_turn", "max_cost_usd": 0.1},
    },
]
ODD: list[dict[str, Any]] = [
    ITEMS | {"tools": [{"type": "mcp", "authorization": "Bearer x", "headers": {"k": "v"}}]},
    CHAT | {"id": "è\ud800", "metadata": {"big": 10**40, "nested": [None, {"x": -0.5}]}},
    CHAT | {"id": 5, "metadata": []},
]


@pytest.mark.parametrize("members", REQUESTS)
async def test_large_bodies_are_read_like_small_ones(start: Start, members: dict[str, Any]) -> None:
    intake = start()
    small = body(*ODD, CHAT, **members)
    large = body(*ODD, CHAT, LONG, **members)
    assert len(small) < INLINE_BYTES < len(large)
    request, warnings, conversations = await everything(intake, small)
    assert await everything(intake, large) == (request, warnings, [*conversations, *(await _only(intake, LONG, 4))])


async def _only(intake: ProcessIntake, conversation: Any, index: int) -> list[NewConversation]:
    _, _, found = await everything(intake, body(conversation))
    return [replace(each, index=index) for each in found]


async def test_conversations_are_kept_as_received_but_for_their_credentials(start: Start) -> None:
    slices = [json.dumps(each).encode() for each in [*ODD, LONG]]
    _, _, found = await everything(start(), b'{"conversations": [' + b" ,\n".join(slices) + b"]}")
    for conversation, sent in zip(found, slices, strict=True):
        kept = zstandard.ZstdDecompressor().decompress(conversation.body)
        assert conversation.size == len(sent)
        assert conversation.sha256 == hashlib.sha256(sent).hexdigest()
        assert conversation.stored_sha256 == hashlib.sha256(kept).hexdigest()
        assert (kept == sent) == (not conversation.redactions)
    assert found[0].redactions == ("/tools/0/authorization", "/tools/0/headers/k")
    assert json.loads(zstandard.ZstdDecompressor().decompress(found[0].body))["tools"][0]["headers"] == {
        "k": "[redacted]"
    }
    assert found[1].client_id == "è\ufffd"
    assert found[1].metadata == {"big": 10**40, "nested": [None, {"x": -0.5}]}
    assert (found[2].client_id, found[2].metadata) == (None, None)


async def test_metadata_never_holds_what_json_cannot(start: Start) -> None:
    raw = b'{"conversations":[{"messages":[{"role":"assistant","content":"x"}],"metadata":{"v":[1e400,-1e400]}}]}'
    _, _, found = await everything(start(), raw)
    assert json.dumps(found[0].metadata, allow_nan=False)


@pytest.mark.parametrize(
    "broken",
    [
        {"messages": [{"role": "system", "content": "x"}]},
        {"items": [{"role": "user"}], "tools": None},
        5,
    ],
)
async def test_large_bodies_are_refused_like_small_ones(start: Start, broken: Any) -> None:
    intake = start()
    small, large = await refusal(intake, body(CHAT, broken)), await refusal(intake, body(LONG, broken))
    assert small.problems == large.problems
    assert small.count == large.count == len(small.problems)
    assert all(each.pointer.startswith("/conversations/1") and each.conversation == 1 for each in small.problems)


async def test_places_are_pointers_and_unreadable_bodies_have_a_line_and_column(start: Start) -> None:
    intake = start()
    (problem,) = (await refusal(intake, body(CHAT, metadata={"a/b~c": 1}))).problems
    assert (problem.pointer, problem.conversation, problem.line) == ("/metadata/a~1b~0c", None, None)
    for gap in (b"", b" " * INLINE_BYTES):
        (problem,) = (await refusal(intake, b'{"conversations":\n' + gap + b"[NaN]}")).problems
        assert (problem.pointer, problem.code) == ("", "number_not_finite")
        assert (problem.line, problem.column) == (2, len(gap) + 2)


async def test_spooled_bodies_are_read_from_their_file(start: Start, tmp_path: Path) -> None:
    intake = start()
    spooled = tmp_path / "body"
    for raw in (body(CHAT), body(LONG)):
        spooled.write_bytes(raw)
        async with intake.admit(Body(len(raw), "", path=str(spooled)), RULES) as admitted:
            assert [len(batch) async for batch in admitted.batches] == [1]
    spooled.unlink()


async def test_many_conversations_come_a_few_at_a_time(start: Start) -> None:
    raw = body(*[CHAT] * 2000)
    async with start().admit(in_memory(raw), RULES) as admitted:
        sizes = [len(batch) async for batch in admitted.batches]
    assert sum(sizes) == 2000
    assert max(sizes) == packing.FRAME_ROWS
    noise = [{"messages": [{"role": "assistant", "content": os.urandom(400_000).hex()}]} for _ in range(6)]
    async with start().admit(in_memory(body(*noise)), RULES) as admitted:
        assert max([len(batch) async for batch in admitted.batches]) < 6


async def test_bytes_in_flight_are_limited_but_for_a_single_body(start: Start) -> None:
    raw = body(CHAT)
    intake = start(in_flight_bytes=len(raw))
    async with intake.admit(in_memory(raw), RULES):
        with pytest.raises(BusyError):
            await everything(intake, raw)
    await everything(intake, raw)
    await refusal(intake, b"{}")
    await everything(start(in_flight_bytes=1), raw)


async def test_what_is_not_taken_leaves_nothing_behind(start: Start, tmp_path: Path) -> None:
    intake = start()
    async with intake.admit(in_memory(body(LONG, CHAT)), RULES):
        assert waiting(tmp_path)
    assert not waiting(tmp_path)
    async with intake.admit(in_memory(body(*[LONG] * 20)), RULES) as admitted:
        async for _ in admitted.batches:
            break
    await refusal(intake, body(LONG, 5))


linux = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")


@linux
async def test_processes_stay_and_end_with_the_intake(start: Start) -> None:
    before = own_children()
    intake = start()
    await intake.start()
    await intake.start()
    (first,) = own_children() - before
    for _ in range(3):
        await everything(intake, body(LONG))
    assert own_children() - before == {first}
    await asyncio.gather(*(everything(intake, body(LONG)) for _ in range(5)))
    assert len(own_children() - before) == 2
    await intake.aclose()
    assert own_children() == before


@linux
async def test_a_process_that_died_is_replaced(start: Start) -> None:
    before = own_children()
    intake = start()
    await intake.start()
    (idle,) = own_children() - before
    os.kill(idle, signal.SIGKILL)
    await gone(idle)
    await everything(intake, body(LONG))
    (busy,) = own_children() - before
    os.kill(busy, signal.SIGSTOP)
    reading = asyncio.create_task(everything(intake, body(LONG)))
    await asyncio.sleep(0.1)
    os.kill(busy, signal.SIGKILL)
    _, _, found = await reading
    assert len(found) == 1


@linux
async def test_giving_up_ends_the_process_that_was_at_it(start: Start, tmp_path: Path) -> None:
    before = own_children()
    intake = start()
    await intake.start()
    (busy,) = own_children() - before
    os.kill(busy, signal.SIGSTOP)
    reading = asyncio.create_task(everything(intake, body(LONG)))
    await asyncio.sleep(0.1)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await gone(busy)
    assert not waiting(tmp_path)
    await everything(intake, body(LONG))


async def test_a_body_that_kills_every_process_is_turned_away(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "_BOOT", "import sys; sys.stdin.buffer.read(8); sys.exit(3)")
    with pytest.raises(BusyError):
        await everything(start(), body(LONG))


async def test_a_body_that_takes_too_long_is_turned_away(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "_BOOT", "import sys, time; sys.stdin.buffer.read(8); time.sleep(60)")
    monkeypatch.setattr(children, "LONGEST_JOB_SECONDS", 0.1)
    monkeypatch.setattr(children, "_GRACE_SECONDS", 0.1)
    started = time.monotonic()
    with pytest.raises(BusyError):
        await everything(start(), body(LONG))
    assert time.monotonic() - started < 10


PARENT = """
import asyncio, os, sys, time
sys.path.insert(0, sys.argv[1])
from app.intake.process_intake import ProcessIntake
from app.pipeline.values import Body, Rules

async def main():
    intake = ProcessIntake(in_flight_bytes=1 << 30)
    await intake.start()
    if sys.argv[2] == "busy":
        one = b'{"messages":[{"role":"assistant","content":"x"}]}'
        raw = b'{"conversations":[' + (one + b",") * 300_000 + one + b']}'
        async with intake.admit(Body(len(raw), "", data=raw), Rules({})): pass
    await asyncio.sleep(600)

asyncio.run(main())
"""


@linux
@pytest.mark.parametrize("state", ["idle", "busy"])
def test_nothing_survives_a_killed_parent(state: str, tmp_path: Path) -> None:
    root = str(Path(children.__file__).parents[2])
    environment = {"TMPDIR": str(tmp_path), "PATH": os.environ.get("PATH", "")}
    with subprocess.Popen([sys.executable, "-c", PARENT, root, state], env=environment) as parent:
        listed = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
        while not (pids := listed.read_text().split()):
            assert parent.poll() is None
            time.sleep(0.02)
        time.sleep(0.5 if state == "busy" else 0.0)
        parent.kill()
    asyncio.run(gone(int(pids[0])))
