"""The arq side of a worker: listen until told to stop, whatever Redis does.

arq's own loop ends with the first Redis error it meets, so it is started again once the jobs under way have ended,
or been given back. The database owns retries, hence ``max_tries=1``; results are not
kept; ``queue_read_limit`` is above any fleet's running jobs, which stay in the queue's head while they run.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from arq.worker import Worker, func
from redis.exceptions import RedisError

from app.queueing.arq_queue import JOB_NAME, connect, deserialize, serialize
from app.queueing.stopping import stop

_log = logging.getLogger(__name__)

_READ_LIMIT = 2000
_PAUSE_SECONDS = 1.0
_SETTLE_SECONDS = 20.0
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

    while True:
        worker = Worker(
            [func(job, name=JOB_NAME)],  # type: ignore[arg-type] # arq's protocol asks for **kwargs
            redis_pool=connect(url),
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
        polling = asyncio.ensure_future(worker.main())
        try:
            await asyncio.wait({polling})
            polling.result()
        except (RedisError, OSError) as error:
            _log.warning("the queue is away: %s", type(error).__name__)
            await _settle(worker)
        finally:
            await _stop(worker, polling)
        await asyncio.sleep(_PAUSE_SECONDS)


async def _settle(worker: Worker) -> None:
    """Let the jobs under way end, for a while: what is cancelled then goes on from its last verdict."""
    if worker.tasks:
        await asyncio.wait(worker.tasks.values(), timeout=_SETTLE_SECONDS)


async def _stop(worker: Worker, polling: "asyncio.Task[None]") -> None:
    worker.allow_pick_jobs = False
    await stop(polling, again_seconds=0.2)
    await stop(*worker.tasks.values())
    try:
        await worker.pool.aclose(close_connection_pool=True)
    except (RedisError, OSError):
        _log.debug("the connection was gone already")
