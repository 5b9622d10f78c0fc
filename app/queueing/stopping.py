"""Ending tasks that may not hear it the first time.

Until Python 3.12, ``asyncio.wait_for`` loses a cancellation that arrives while its inner task is just completing, and
redis-py puts it around every command of a connection with a socket timeout. A worker that was told to stop once and
waited would go on for ever (seen in one of forty stops under load).
"""

import asyncio

_AGAIN_SECONDS = 3.0
"""Longer than a job takes to give its work back, which a second cancellation would cut short."""


async def stop(*tasks: "asyncio.Task[None]", again_seconds: float = _AGAIN_SECONDS) -> None:
    """Cancel tasks until they have ended, whatever they end with."""
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=again_seconds)
