"""What passes between the pipeline and its ports: frozen values, no behaviour."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, TypeVar

from app.evaluation.model import EvaluationRequest, EvaluationWarning, NewConversation, Options
from app.findings.rollup import Tally
from app.judges.contract import Target

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Body:
    """A received request body: in memory when small, else in a file that lives as long as the request."""

    size: int
    sha256: str
    data: bytes | None = field(default=None, repr=False)
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """What a request may ask for on this installation."""

    judges: Mapping[str, bool]
    """Name → whether it is in the default set, in catalogue order."""
    models: Collection[str] = ()
    """Judge models a client may choose."""
    webhook_http_hosts: bool = False
    """Whether http:// webhooks are acceptable at all (they are only when private networks were allowed)."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """A request that broke no rule. ``batches`` yields every conversation in order, once, a few at a time."""

    request: EvaluationRequest
    total: int
    warnings: tuple[EvaluationWarning, ...]
    batches: AsyncIterator[Sequence[NewConversation]]


@dataclass(frozen=True, slots=True)
class NewEvaluation:
    """A row to be."""

    id: str
    workspace_id: str
    request: EvaluationRequest
    total: int
    warnings: tuple[EvaluationWarning, ...]
    webhook_secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to work on a conversation; every write under it is refused once another has taken it over."""

    conversation_id: str
    token: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A conversation taken for judging, with all that is needed to do so."""

    lease: Lease
    evaluation_id: str
    workspace_id: str
    index: int
    attempt: int
    """How many times it has been claimed, this time included."""
    format: str
    body: bytes = field(repr=False)
    """zstd-compressed, as stored."""
    judges: tuple[str, ...]
    options: Options
    target: Target | None
    tokens_spent: int
    """By finished conversations of the evaluation."""
    cost_spent_usd: float
    done: frozenset[tuple[str, str, str]]
    """Keys (dimension, subject key, judge version) of verdicts stored by earlier attempts."""
    waited_seconds: float
    """Since the evaluation was created, by the database's clock."""


@dataclass(frozen=True, slots=True)
class Closing:
    """The evaluation's state right after one of its conversations ended."""

    evaluation_id: str
    remaining: int
    total: int
    failed: int
    tally: Tally
    has_webhook: bool


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A bearer key, found by its hash."""

    id: str
    workspace_id: str
    scopes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of a list: ``limit`` objects after the one with id ``after``, in the order asked for."""

    limit: int = 20
    after: str | None = None
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Slice(Generic[T_co]):
    """A part of a list, and whether there is more behind it."""

    data: Sequence[T_co]
    has_more: bool


@dataclass(frozen=True, slots=True)
class EvaluationFilter:
    """Empty tuples and None do not filter; values of one field are alternatives."""

    status: tuple[str, ...] = ()
    result: tuple[str, ...] = ()
    created_after: datetime | None = None
    created_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class ConversationFilter:
    """As ``EvaluationFilter``."""

    status: tuple[str, ...] = ()
    result: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VerdictFilter:
    """As ``EvaluationFilter``; ``conversation`` holds indices."""

    conversation: tuple[int, ...] = ()
    dimension: tuple[str, ...] = ()
    family: tuple[str, ...] = ()
    status: tuple[str, ...] = ()
    passed: bool | None = None


@dataclass(frozen=True, slots=True)
class FindingFilter:
    """As ``VerdictFilter``; ``min_severity`` keeps that severity and worse."""

    conversation: tuple[int, ...] = ()
    dimension: tuple[str, ...] = ()
    family: tuple[str, ...] = ()
    severity: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    min_severity: str | None = None
