"""Bounds what one conversation may cost the checker of schemas.

Each hostile schema takes its full time before it is given up, and a conversation may bring a hundred thousand of them.
After the first few, the rest are not tried; and only a few are under way at once, so that what other conversations ask
is never far back in the queue.
"""

import asyncio
import time
from collections.abc import Sequence

from app.judges.contract import SchemaCheck, SchemaChecker

MOST_OVERRUNS = 8
_AT_ONCE = 8
_OVERRUN_SECONDS = 1.0
_SPENT = SchemaCheck(
    unusable="too many schemas of this conversation took too long, so it was not tried", unusable_code="schema_timeout"
)


class PatientSchemas:
    """A ``SchemaChecker`` for one conversation that loses its patience. Make one for each."""

    def __init__(self, schemas: SchemaChecker) -> None:
        self._schemas = schemas
        self._overruns = 0
        self._turn = asyncio.Semaphore(_AT_ONCE)

    async def check(self, jobs: Sequence[tuple[str, str]]) -> list[SchemaCheck]:
        """Check as the wrapped checker does, unless too many jobs have overrun before."""
        async with self._turn:
            if self._overruns >= MOST_OVERRUNS:
                return [_SPENT] * len(jobs)
            began = time.monotonic()
            results = await self._schemas.check(jobs)
            if time.monotonic() - began > _OVERRUN_SECONDS:
                self._overruns += sum(result.unusable is not None for result in results)
            return results
