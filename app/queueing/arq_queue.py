"""arq as a doorbell: a job carries one conversation id and nothing depends on it arriving.

Facts of arq 0.28 that shape this module: it pickles unless told otherwise; a job id that was used before is refused
while its result is kept, so ids are random; its settings have no socket timeout, so that a hung Redis would block for
ever, hence the pool of our own; enqueueing one by one is 30 times slower than one pipeline.
"""

import json
import time
import uuid
from collections.abc import Sequence
from typing import Any

from arq.connections import ArqRedis
from arq.constants import default_queue_name, expires_extra_ms, job_key_prefix
from arq.jobs import serialize_job
from redis.asyncio import ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from app.pipeline.errors import QueueUnavailableError

JOB_NAME = "judge_conversation"
"""Never rename: a worker drops jobs whose name it does not know."""
_TIMEOUT_SECONDS = 2.0
_BATCH = 1000


def serialize(value: Any) -> bytes:
    """Encode a job as JSON; an exception, which arq would pickle, becomes its repr."""
    return json.dumps(value, default=repr).encode()


def deserialize(data: bytes) -> Any:
    """Decode a job."""
    return json.loads(data)


def connect(url: str) -> ArqRedis:
    """Return a lazily connecting client that gives up on a hung server after two seconds.

    Args:
        url: ``redis://``, ``rediss://`` or ``unix://``.
    """
    pool = ConnectionPool.from_url(
        url,
        socket_timeout=_TIMEOUT_SECONDS,
        socket_connect_timeout=_TIMEOUT_SECONDS,
        health_check_interval=30,
        retry=Retry(NoBackoff(), 1),
        retry_on_error=[RedisConnectionError],  # a connection that died idle; a hung server is not tried again
    )
    return ArqRedis(pool, job_serializer=serialize, job_deserializer=deserialize)


class ArqQueue:
    """The `Queue` port on arq."""

    def __init__(self, redis: ArqRedis) -> None:
        self._redis = redis

    async def judge(self, conversation_ids: Sequence[str]) -> None:
        """Enqueue one job a conversation, in pipelined batches.

        Raises:
            QueueUnavailableError: Redis does not answer or refuses.
        """
        try:
            for start in range(0, len(conversation_ids), _BATCH):
                await self._enqueue(conversation_ids[start : start + _BATCH])
        except (RedisError, OSError) as error:
            raise QueueUnavailableError(type(error).__name__) from error

    async def _enqueue(self, conversation_ids: Sequence[str]) -> None:
        now_ms = int(time.time() * 1000)
        async with self._redis.pipeline(transaction=False) as pipe:
            scores: dict[str, float] = {}
            for conversation_id in conversation_ids:
                job_id = uuid.uuid4().hex
                job = serialize_job(JOB_NAME, (conversation_id,), {}, None, now_ms, serializer=serialize)
                pipe.psetex(job_key_prefix + job_id, expires_extra_ms, job)
                scores[job_id] = now_ms
            pipe.zadd(default_queue_name, scores)
            await pipe.execute()

    async def length(self) -> int:
        """Return how many jobs wait or run; they stay in the queue while they run.

        Raises:
            QueueUnavailableError: Redis does not answer.
        """
        try:
            return int(await self._redis.zcard(default_queue_name))
        except (RedisError, OSError) as error:
            raise QueueUnavailableError(type(error).__name__) from error

    async def check(self) -> None:
        """Return when Redis answers and never evicts keys.

        Raises:
            QueueUnavailableError: it does not answer, or a ``maxmemory-policy`` would drop queued jobs.
        """
        try:
            await self._redis.ping()
            policy = await self._policy()
        except (RedisError, OSError) as error:
            raise QueueUnavailableError(type(error).__name__) from error
        if policy not in {None, "noeviction"}:
            raise QueueUnavailableError(f"maxmemory-policy is {policy}; jobs could be evicted: set noeviction")

    async def _policy(self) -> str | None:
        """Return the eviction policy, None where a managed Redis does not tell."""
        memory = await self._redis.info("memory")
        policy = memory.get("maxmemory_policy")
        return None if policy is None else str(policy)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._redis.aclose(close_connection_pool=True)
