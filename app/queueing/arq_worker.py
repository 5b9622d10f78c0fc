"""The arq side of a worker: listen until told to stop, whatever Redis does.

arq's own loop ends with the first Redis error it meets, so it is started again after a pause, while the jobs under way
go on (they need no Redis) and keep their slots. The database owns retries, hence ``max_tries=1``; results are not
kept; ``queue_read_limit`` is above any fleet's running jobs, which stay in the queue's head while they run.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from arq.connections import ArqRedis
from arq.worker import Worker, func
from redis.exceptions import RedisError

from app.queueing.arq_queue import JOB_NAME, connect, deserialize, serialize
from app.queueing.stopping import stop

_log = logging.getLogger(__name__)

_READ_LIMIT = 2000
_PAUSE_SECONDS = 1.0
_JOB_TIMEOUT_SECONDS = 900
"""Longer than an attempt of the pipeline, which has its own deadline. A killed worker's job ids linger for as long."""


async def listen(url: str, judge_conversation: Callable[[str], Awaitable[None]], *, max_jobs: int) -> None:
    """Run jobs until cancelled.

    Args:
        url: the Redis to listen to.
        judge_conversation: what a job does with its conversation id.
        max_jobs: conversations judged at once by this process.
    """

    async def job(_: dict[Any, Any], conversation_id: str) -> None:
        await judge_conversation(conversation_id)

    redis = connect(url)
    left: set[asyncio.Task[Any]] = set()
    try:
        while True:
            worker = _worker(redis, job, max_jobs)
            _share_slots(worker, left)
            polling = asyncio.ensure_future(worker.main())
            try:
                await asyncio.wait({polling})
                polling.result()
            except (RedisError, OSError) as error:
                _log.warning("the queue is away: %s", type(error).__name__)
            finally:
                await stop(polling, again_seconds=0.2)
                left = {task for task in (*left, *worker.tasks.values()) if not task.done()}
            await asyncio.sleep(_PAUSE_SECONDS)
    finally:
        await stop(*left)
        with contextlib.suppress(RedisError, OSError):  # it was gone already
            await redis.aclose(close_connection_pool=True)


def _worker(redis: ArqRedis, job: Callable[[dict[Any, Any], str], Awaitable[None]], max_jobs: int) -> Worker:
    return Worker(
        [func(job, name=JOB_NAME)],  # type: ignore[arg-type] # arq's protocol asks for **kwargs
        redis_pool=redis,
        max_jobs=max_jobs,
        max_tries=1,
        keep_result=0,
        job_timeout=_JOB_TIMEOUT_SECONDS,
        poll_delay=0.05,
        queue_read_limit=_READ_LIMIT,
        job_serializer=serialize,
        job_deserializer=deserialize,
        handle_signals=False,
        log_results=False,
    )


def _share_slots(worker: Worker, left: set["asyncio.Task[Any]"]) -> None:
    """Let the jobs of the loop before keep their slots until they end."""

    def free(_: "asyncio.Task[Any]") -> None:
        worker.max_jobs += 1

    worker.max_jobs -= len(left)
    for task in left:
        task.add_done_callback(free)
