"""Verdicts, findings and evidence: the answer of a judge, as it is stored and shown.

Four honest states (``Status``), each with its own denominator: only ``scored`` verdicts enter a pass rate. A failed
verdict has at least one finding of severity low or more; a passed one has none but info. Both rules are checked where
a decision is made, so that no judge can break them by accident.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from app.transcripts.model import Source

Severity: TypeAlias = Literal["info", "low", "medium", "high", "critical"]
Status: TypeAlias = Literal["scored", "not_applicable", "not_scored", "error"]
Family: TypeAlias = Literal["output", "tool", "expectation"]
Level: TypeAlias = Literal["call", "turn", "conversation"]
Scale: TypeAlias = Literal["binary", "1-5", "0-1"]
Method: TypeAlias = Literal["deterministic", "llm", "hybrid"]
Role: TypeAlias = Literal["violation", "support", "context"]

SEVERITIES: tuple[Severity, ...] = get_args(Severity)


def rank(severity: Severity) -> int:
    """Return 0 for info up to 4 for critical."""
    return SEVERITIES.index(severity)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A place in the conversation and the words that stand there.

    ``pointer`` is RFC 6901 inside ``source[event]``. At a string, ``start`` and ``end`` count code points of the
    decoded string; elsewhere both are None and ``quote`` is the value's JSON text. Make them with
    ``app.findings.evidence``, which cuts the words from the transcript itself.
    """

    source: Source
    event: int | None
    pointer: str
    start: int | None
    end: int | None
    quote: str
    role: Role = "violation"


@dataclass(frozen=True, slots=True)
class Finding:
    """One concrete violation (at severity info, a remark), with at least one piece of evidence.

    A judge gives code, texts and evidence; severity comes from the judge's own table, never from a model.
    """

    code: str
    severity: Severity
    title: str
    description: str
    why_it_matters: str
    evidence: tuple[Evidence, ...]
    event: int | None = None
    """Event the finding is about, for ordering; None: the conversation as a whole."""
    turn: int | None = None

    def __post_init__(self) -> None:
        if not self.evidence:
            raise ValueError(f"finding {self.code} has no evidence")


@dataclass(frozen=True, slots=True)
class Subject:
    """What a verdict is about. ``key`` makes it unique within a conversation and dimension."""

    level: Level = "conversation"
    turn: int | None = None
    event: int | None = None
    call_id: str | None = None
    expectation: str | None = None
    """RFC 6901 pointer of the expectation inside the conversation."""

    @property
    def key(self) -> str:
        """Return a short stable text: ``conversation``, ``turn:1``, ``call:7``, with ``@pointer`` if expected."""
        place = {"call": f"call:{self.event}", "turn": f"turn:{self.turn}", "conversation": "conversation"}[self.level]
        return place if self.expectation is None else f"{place}@{self.expectation}"


@dataclass(frozen=True, slots=True)
class Usage:
    """What was paid for, failures and retries included. ``cost_usd`` is None when any price is unknown."""

    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None

    def __add__(self, other: "Usage") -> "Usage":
        costs = [usage.cost_usd for usage in (self, other) if usage.requests]
        known = [cost for cost in costs if cost is not None]
        return Usage(
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.completion_tokens + other.completion_tokens,
            sum(known) if costs and len(known) == len(costs) else None,
        )


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of the transcript the judge saw; nothing is cut silently."""

    events_seen: int
    events_total: int
    chunks: int = 1


@dataclass(frozen=True, slots=True)
class Votes:
    """How many answers were asked for and how many agreed with the label."""

    cast: int
    agree: int


@dataclass(frozen=True, slots=True)
class Decision:
    """What a judge says about one subject.

    Build it with ``passed``, ``failed``, ``not_applicable``, ``not_scored`` or ``errored``.
    """

    status: Status
    reason_code: str | None = None
    passed: bool | None = None
    label: str | None = None
    score: float | None = None
    rationale: str = ""
    method: Method = "deterministic"
    findings: tuple[Finding, ...] = ()
    model: str | None = None
    prompt_sha256: str | None = None
    coverage: Coverage | None = None
    votes: Votes | None = None
    disputed: bool = False
    dropped_findings: int = 0
    details: Mapping[str, Any] = field(default_factory=dict)
    usage: Usage = Usage()
    attempts: int = 1

    def __post_init__(self) -> None:
        faults = [finding for finding in self.findings if finding.severity != "info"]
        if (self.status == "scored") != (self.passed is not None):
            raise ValueError("passed is true or false exactly when scored")
        if (self.status == "scored") != (self.reason_code is None):
            raise ValueError("every status but scored carries a reason code")
        if self.passed is False and not faults:
            raise ValueError("a failed verdict has at least one finding of severity low or more")
        if self.passed is not False and faults:
            raise ValueError("only a failed verdict has findings above info")


def passed(rationale: str, **rest: Any) -> Decision:
    """Return a scored decision that found nothing wrong; findings, if any, are info."""
    return Decision("scored", passed=True, rationale=rationale, **rest)


def failed(rationale: str, findings: Sequence[Finding], **rest: Any) -> Decision:
    """Return a scored decision with its violations."""
    return Decision("scored", passed=False, rationale=rationale, findings=tuple(findings), **rest)


def not_applicable(reason_code: str, rationale: str, **rest: Any) -> Decision:
    """Return that the question does not arise."""
    return Decision("not_applicable", reason_code, rationale=rationale, **rest)


def not_scored(reason_code: str, rationale: str, **rest: Any) -> Decision:
    """Return that the question arises, but the material is missing or the judge abstained."""
    return Decision("not_scored", reason_code, rationale=rationale, **rest)


def errored(reason_code: str, rationale: str, **rest: Any) -> Decision:
    """Return that the judge's infrastructure failed after its retries."""
    return Decision("error", reason_code, rationale=rationale, **rest)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decision with the judge that took it and the subject it is about."""

    dimension: str
    family: Family
    judge_version: str
    subject: Subject
    scale: Scale
    threshold: float | None
    decision: Decision

    @property
    def key(self) -> tuple[str, str, str]:
        """Return what makes it unique within a conversation."""
        return (self.dimension, self.subject.key, self.judge_version)
