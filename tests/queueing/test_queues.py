import asyncio
import contextlib
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest

from app.pipeline.errors import QueueUnavailableError
from app.queueing.arq_queue import ArqQueue, connect
from app.queueing.arq_worker import listen
from app.queueing.fallback import FallbackQueue
from app.queueing.in_process import InProcessQueue
from tests.processes import PrivateRedis, private_redis


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateRedis]:
    with private_redis() as running:
        yield running


@pytest.fixture
async def redis(server: PrivateRedis) -> AsyncIterator[ArqQueue]:
    client = connect(server.url)
    await client.flushall()
    queue = ArqQueue(client)
    yield queue
    await queue.aclose()


@contextlib.asynccontextmanager
async def listening(
    url: str, job: Callable[[str], Awaitable[None]], max_jobs: int = 10
) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(listen(url, job, max_jobs=max_jobs))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.02)


class Bell:
    """A job function that remembers what it was called with."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def ring(self, conversation_id: str) -> None:
        self.heard.append(conversation_id)


async def test_every_id_is_heard_and_asking_twice_asks_again(server: PrivateRedis, redis: ArqQueue) -> None:
    bell = Bell()
    ids = [f"conv_{number}" for number in range(2500)]
    await redis.judge(ids[:200])
    await redis.judge(ids[:3])
    async with listening(server.url, bell.ring, max_jobs=50):
        await until(lambda: len(bell.heard) == 203)
    assert sorted(bell.heard) == sorted([*ids[:200], *ids[:3]])


async def test_nothing_of_a_finished_job_stays_behind(server: PrivateRedis, redis: ArqQueue) -> None:
    bell = Bell()
    client = connect(server.url)
    await redis.judge(["conv_1", "conv_2"])
    async with listening(server.url, bell.ring):
        await until(lambda: len(bell.heard) == 2)
        async with asyncio.timeout(5):
            while await client.keys("arq:job:*"):
                await asyncio.sleep(0.02)
    assert [key for key in await client.keys("*") if b"health" not in key] == []
    await client.aclose(close_connection_pool=True)


async def test_a_dead_redis_is_told_at_once(redis: ArqQueue) -> None:
    with private_redis() as other:
        queue = ArqQueue(connect(other.url))
        await queue.judge(["conv_1"])
        other.stop()
        with pytest.raises(QueueUnavailableError):
            await queue.judge(["conv_2"])
        with pytest.raises(QueueUnavailableError):
            await queue.check()
        await queue.aclose()


async def test_a_hung_redis_costs_seconds_and_no_more() -> None:
    with private_redis() as other:
        queue = ArqQueue(connect(other.url))
        await queue.check()
        other.signal(signal.SIGSTOP)
        started = time.monotonic()
        with pytest.raises(QueueUnavailableError):
            await queue.judge(["conv_1"])
        assert time.monotonic() - started < 4
        other.signal(signal.SIGCONT)
        await queue.aclose()


async def test_a_redis_that_evicts_is_refused() -> None:
    with private_redis("--maxmemory", "50mb", "--maxmemory-policy", "allkeys-lru") as other:
        queue = ArqQueue(connect(other.url))
        with pytest.raises(QueueUnavailableError, match="noeviction"):
            await queue.check()
        await queue.aclose()


async def test_a_listener_survives_the_death_of_redis() -> None:
    bell = Bell()
    with private_redis() as other:
        queue = ArqQueue(connect(other.url))
        async with listening(other.url, bell.ring):
            await queue.judge(["conv_1"])
            await until(lambda: bell.heard == ["conv_1"])
            other.stop()
            await asyncio.sleep(0.3)
            other.start()
            await queue.judge(["conv_2"])
            await until(lambda: bell.heard == ["conv_1", "conv_2"])
        await queue.aclose()


async def test_a_job_under_way_outlives_redis() -> None:
    done: list[str] = []
    started = asyncio.Event()

    async def slow(conversation_id: str) -> None:
        started.set()
        await asyncio.sleep(1)
        done.append(conversation_id)

    with private_redis() as other:
        queue = ArqQueue(connect(other.url))
        async with listening(other.url, slow):
            await queue.judge(["conv_1"])
            await started.wait()
            other.stop()
            await until(lambda: done == ["conv_1"])
        await queue.aclose()


async def test_in_process_work_is_bounded_and_not_doubled() -> None:
    running = most = 0
    heard: list[str] = []

    async def job(conversation_id: str) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        heard.append(conversation_id)
        running -= 1

    queue = InProcessQueue(job, max_jobs=3)
    await queue.judge([f"conv_{number}" for number in range(10)])
    await queue.judge(["conv_9"])
    await until(lambda: len(heard) == 10)
    assert (most, len(set(heard))) == (3, 10)
    await queue.aclose()
    with pytest.raises(QueueUnavailableError):
        await queue.judge(["conv_11"])


async def test_one_bad_job_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    bell = Bell()

    async def job(conversation_id: str) -> None:
        if conversation_id == "bad":
            raise ValueError("bad")
        await bell.ring(conversation_id)

    queue = InProcessQueue(job, max_jobs=1)
    await queue.judge(["bad", "good"])
    await until(lambda: bell.heard == ["good"])
    assert "judging bad failed" in caplog.text
    await queue.aclose()


async def test_the_second_bell_rings_when_the_first_is_gone() -> None:
    bell = Bell()
    own = InProcessQueue(bell.ring, max_jobs=2)
    gone = InProcessQueue(bell.ring, max_jobs=2)
    await gone.aclose()
    queue = FallbackQueue(gone, own)
    await queue.judge(["conv_1"])
    await until(lambda: bell.heard == ["conv_1"])
    with pytest.raises(QueueUnavailableError):
        await queue.check()
    await own.aclose()


async def test_a_listener_goes_on_listening_while_an_old_job_runs() -> None:
    heard: list[str] = []
    release = asyncio.Event()

    async def job(conversation_id: str) -> None:
        heard.append(conversation_id)
        if conversation_id == "slow":
            await release.wait()
            heard.append("slow ended")

    with private_redis() as other:
        queue = ArqQueue(connect(other.url))
        async with listening(other.url, job, max_jobs=2):
            await queue.judge(["slow"])
            await until(lambda: heard == ["slow"])
            other.stop()
            await asyncio.sleep(0.3)
            other.start()
            await queue.judge(["quick", "quicker"])
            await until(lambda: {"quick", "quicker"} <= set(heard))
            release.set()
            await until(lambda: "slow ended" in heard)
        await queue.aclose()
