"""What a step can refuse, as values that an adapter turns into an answer."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One violation with its place in the whole request body.

    ``pointer`` is RFC 6901 from the body's root ("" for an unparsable body, which has ``line`` and ``column``, both
    from 1, instead).
    """

    pointer: str
    code: str
    message: str
    conversation: int | None = None
    line: int | None = None
    column: int | None = None


class RefusedError(Exception):
    """The request breaks the contract; nothing was stored or queued.

    ``count`` is exact, or None when there were more than anyone wanted to count (``problems`` is then a prefix).
    """

    def __init__(self, problems: Sequence[Problem], count: int | None) -> None:
        super().__init__(f"{len(problems)} problems")
        self.problems = tuple(problems)
        self.count = count


class NotFoundError(Exception):
    """There is no such object in this workspace."""


class FinishedError(Exception):
    """The evaluation has already ended, so it cannot be canceled."""


class IdempotencyMismatchError(Exception):
    """The Idempotency-Key was used before with another body."""


class BusyError(Exception):
    """Too much is being received at once; try again after ``retry_after_seconds``."""

    def __init__(self, retry_after_seconds: int = 1) -> None:
        super().__init__("too many bytes in flight")
        self.retry_after_seconds = retry_after_seconds


class QueueUnavailableError(Exception):
    """The doorbell cannot be rung; the dispatcher will find the work."""


class StoreUnavailableError(Exception):
    """The database does not answer; nothing was changed."""


class CursorError(Exception):
    """``after`` names no object of this list."""
