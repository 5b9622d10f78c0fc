"""An evaluation, its conversations and everything that can be read of them, as frozen values.

States. Conversation: queued → in_progress → completed | failed | canceled; a lease that runs out puts it back to
queued. Evaluation: queued → in_progress → completed | failed | canceled, driven by its conversations; it is failed
only when all of them are. ``remaining`` reaches zero exactly once, and that transaction closes it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

from app.findings.model import Family, Finding, Severity, Verdict
from app.findings.rollup import Result, Tally
from app.judges.contract import Target
from app.transcripts.model import Warning_

Status: TypeAlias = Literal["queued", "in_progress", "completed", "failed", "canceled"]
FINAL: frozenset[str] = frozenset({"completed", "failed", "canceled"})
DEFAULT_WORKSPACE = "ws_default"


@dataclass(frozen=True, slots=True)
class Options:
    """How to judge. ``max_tokens`` and ``max_cost_usd`` are budgets for the whole evaluation."""

    model: str | None = None
    votes: int = 1
    scope: Literal["all_turns", "last_turn"] = "all_turns"
    max_tokens: int | None = None
    max_cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class WebhookRequest:
    """Where to tell that the evaluation ended. ``secret`` is ``whsec_`` + base64; None: one is made."""

    url: str
    secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class EvaluationRequest:
    """A valid request, its conversations apart."""

    name: str | None = None
    metadata: Mapping[str, str] | None = None
    target: Target | None = None
    judges: tuple[str, ...] = ()
    """Names, in catalogue order; the default set where the client named none."""
    options: Options = Options()
    webhook: WebhookRequest | None = None


@dataclass(frozen=True, slots=True)
class EvaluationWarning:
    """A warning and the conversation it is about (None: the request)."""

    conversation: int | None
    warning: Warning_


@dataclass(frozen=True, slots=True)
class NewConversation:
    """An admitted conversation, ready to be stored."""

    index: int
    format: str
    body: bytes = field(repr=False)
    """The bytes kept, zstd-compressed."""
    size: int
    """Length in bytes of what was received."""
    sha256: str
    """Of the bytes received, hex."""
    stored_sha256: str
    """Of the bytes kept, hex: equal to ``sha256`` unless ``redactions`` lists pointers."""
    client_id: str | None = None
    metadata: Mapping[str, Any] | None = None
    redactions: tuple[str, ...] = ()
    warnings: tuple[Warning_, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """Conversations by state."""

    total: int
    queued: int = 0
    in_progress: int = 0
    completed: int = 0
    failed: int = 0
    canceled: int = 0


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One accepted request and the counters of everything derived from it."""

    id: str
    workspace_id: str
    name: str | None
    metadata: Mapping[str, str] | None
    status: Status
    result: Result | None
    result_reason: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    progress: Progress
    tally: Tally
    judges: tuple[str, ...]
    options: Options
    webhook_url: str | None
    warnings: tuple[EvaluationWarning, ...]
    revision: int = 0
    """Rises with every change a client could see."""

    @property
    def finished(self) -> bool:
        """Whether nothing will change any more."""
        return self.status in FINAL


@dataclass(frozen=True, slots=True)
class Conversation:
    """A stored conversation without its body."""

    id: str
    evaluation_id: str
    index: int
    client_id: str | None
    metadata: Mapping[str, Any] | None
    format: str
    status: Status
    result: Result | None
    sha256: str
    stored_sha256: str
    bytes: int
    redactions: tuple[str, ...]
    warnings: tuple[Warning_, ...]


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """A verdict with its identity."""

    id: str
    evaluation_id: str
    conversation: int
    verdict: Verdict
    created_at: datetime


@dataclass(frozen=True, slots=True)
class StoredFinding:
    """A finding with its identity and the verdict it belongs to."""

    id: str
    evaluation_id: str
    verdict_id: str
    conversation: int
    dimension: str
    family: Family
    finding: Finding

    @property
    def severity(self) -> Severity:
        """The finding's severity."""
        return self.finding.severity
