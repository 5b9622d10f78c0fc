"""A worker whose Redis is away still has a database full of work: then it rings its own bell."""

from collections.abc import Sequence

from app.pipeline.errors import QueueUnavailableError
from app.pipeline.ports import Queue


class FallbackQueue:
    """The `Queue` port: the first choice, or the second when the first does not answer."""

    def __init__(self, first: Queue, second: Queue) -> None:
        self._first = first
        self._second = second

    async def judge(self, conversation_ids: Sequence[str]) -> None:
        """Ring the first, or the second. Raises QueueUnavailableError when neither answers."""
        try:
            await self._first.judge(conversation_ids)
        except QueueUnavailableError:
            await self._second.judge(conversation_ids)

    async def length(self) -> int:
        """Return the first's length, or the second's. Raises QueueUnavailableError when neither answers."""
        try:
            return await self._first.length()
        except QueueUnavailableError:
            return await self._second.length()

    async def check(self) -> None:
        """Check the first: running on the second is worth an alarm."""
        await self._first.check()
