"""What the API needs from the world, as one value that the wiring fills."""

from dataclasses import dataclass
from pathlib import Path

from app.judges.contract import Judge
from app.pipeline.ports import Intake, Queue, Store
from app.pipeline.values import Rules

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """How much and how long. Only tests have a reason to change them."""

    body_bytes: int = 30 * MEBIBYTE
    """Largest request body; one byte more is refused."""
    memory_bytes: int = 256 * 1024
    """A body longer than this is kept in a file while the request lasts."""
    receive_seconds: float = 300.0
    """How long a client may take to send a body."""
    heartbeat_seconds: float = 15.0
    """Longest silence on an event stream."""
    check_seconds: float = 3.0
    """How long a readiness check waits for the database or the queue."""


@dataclass(frozen=True, slots=True)
class Collaborators:
    """Everything behind the routes."""

    store: Store
    queue: Queue
    intake: Intake
    rules: Rules
    judges: tuple[Judge, ...]
    """The catalogue, in order."""
    spool_dir: Path | None = None
    """Where large bodies wait; None: the system's directory for temporary files."""
    limits: Limits = Limits()
