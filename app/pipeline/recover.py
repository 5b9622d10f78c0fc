"""Recover: the dispatcher's two sweeps, so that what the queue forgot or a dead worker held is done all the same.

``publish`` rings for what is due; ``reap`` takes back what nobody works on any more. Every worker runs both, several
at once do no harm, and both run with the queue away: the database alone knows what is due.
"""

import asyncio
import logging
import random

from app.pipeline.errors import QueueUnavailableError, StoreUnavailableError
from app.pipeline.finish import give_up
from app.pipeline.ports import Queue, Store

_log = logging.getLogger(__name__)

WINDOW = 500
"""Jobs in Redis at most, running ones included: it holds hundreds of ids however long the backlog is and however often
they are rung for. A fleet judges no more conversations than this at once."""
REPUBLISH_AFTER_SECONDS = 5.0
"""How long a doorbell ring is trusted: what Redis lost (FLUSHALL, restart) is rung again after this."""
LEASE_SECONDS = 30.0
MAX_ATTEMPTS = 3


async def publish(store: Store, queue: Queue, *, republish_after_seconds: float = REPUBLISH_AFTER_SECONDS) -> int:
    """Ring for due conversations and return how many; trouble is logged, since the next sweep repeats it."""
    ids: list[str] = []
    try:
        room = WINDOW - await queue.length()
        if room <= 0:
            return 0
        async with store.begin() as tx:
            ids = await tx.due(window=room, republish_after_seconds=republish_after_seconds)
        if ids:
            await queue.judge(ids)
    except QueueUnavailableError as error:
        _log.warning("the queue is away, %d conversations wait: %s", len(ids), error)
        await _unpublish(store, ids)
        return 0
    except StoreUnavailableError as error:
        _log.warning("the database is away: %s", error)
        return 0
    return len(ids)


async def _unpublish(store: Store, ids: list[str]) -> None:
    """Make them due again at once, so that they do not wait for the republish time when the queue is back."""
    try:
        async with store.begin() as tx:
            await tx.unpublish(ids)
    except StoreUnavailableError:
        _log.warning("the database is away too; %d conversations are rung for later", len(ids))


async def reap(store: Store, *, max_attempts: int = MAX_ATTEMPTS, lease_seconds: float = LEASE_SECONDS) -> int:
    """Put back conversations whose lease ran out; those out of attempts end as failed. Return how many ended."""
    try:
        async with store.begin() as tx:
            lost = await tx.expired(max_attempts=max_attempts, lease_seconds=lease_seconds)
        for claim in lost:
            _log.error("%s: out of attempts after %d", claim.lease.conversation_id, claim.attempt)
            await give_up(store, claim)
    except StoreUnavailableError as error:
        _log.warning("the database is away: %s", error)
        return 0
    return len(lost)


async def dispatch(
    store: Store,
    queue: Queue,
    *,
    max_attempts: int = MAX_ATTEMPTS,
    lease_seconds: float = LEASE_SECONDS,
    tick_seconds: float = 0.5,
) -> None:
    """Publish and reap for ever. Ticks are jittered so that several dispatchers do not march in step.

    A sweep that failed is logged and repeated: a dispatcher that died would leave work lying, unheard.
    """
    while True:
        try:
            await reap(store, max_attempts=max_attempts, lease_seconds=lease_seconds)
            await publish(store, queue)
        except Exception:  # noqa: BLE001 - see above
            _log.exception("a sweep failed")
        await asyncio.sleep(tick_seconds * random.uniform(0.5, 1.5))  # noqa: S311 - jitter
