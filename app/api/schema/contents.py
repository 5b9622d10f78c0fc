"""What an evaluation contains: conversations, verdicts and findings."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from app.api.schema.base import Count, EvaluationRef, Index, Sha256, Time, WireObject
from app.api.schema.evaluations import Usage, Warning
from app.evaluation.model import Status
from app.findings.model import Family, Level, Method, Role, Scale, Severity
from app.findings.model import Status as VerdictStatus
from app.findings.rollup import Result
from app.transcripts.model import EventKind, Outcome, Source

ConversationRef: TypeAlias = Annotated[str, Field(pattern="^conv_[0-9a-f]{32}$")]
VerdictRef: TypeAlias = Annotated[str, Field(pattern="^verdict_[0-9a-f]{32}$")]
FindingRef: TypeAlias = Annotated[str, Field(pattern="^finding_[0-9a-f]{32}$")]


class Conversation(WireObject):
    """One entry of the request's `conversations`, as listed."""

    id: ConversationRef
    object: Literal["conversation"]
    index: Index = Field(description="Position in the request, from 0.")
    client_id: str | None = Field(description="The conversation's own `id`.")
    metadata: dict[str, Any] | None = Field(description="The conversation's own `metadata`.")
    format: Literal["messages", "items", "eval_document", "agent_transcript"]
    status: Status
    result: Result | None
    sha256: Sha256 = Field(description="Of the bytes received.")
    stored_sha256: Sha256 = Field(description="Of the bytes kept; equal unless `redactions` lists something.")
    bytes: Count = Field(description="Length of what was received.")
    redactions: list[str] = Field(description="RFC 6901 pointers of credentials that were not kept.")
    warnings: list[Warning]


class Event(WireObject):
    """One entry of `items` or `messages`, normalised."""

    index: Index = Field(description="Position in the source array.")
    kind: EventKind
    turn: Index
    text: str


class ToolCall(WireObject):
    """A call with its output, whichever item types they came from."""

    event: Index
    output_event: Index | None
    call_id: str | None
    tool_name: str | None
    kind: str
    arguments: Any = Field(description="Decoded where it could be.")
    output: Any = Field(description="Decoded where it is JSON.")
    output_available: bool
    outcome: Outcome
    error: str | None
    schema_checkable: bool
    parent_call_id: str | None


class CatalogueEntry(WireObject):
    """A tool the agent could have called."""

    name: str
    origin: Literal["declared", "discovered"]


class ConversationContent(Conversation):
    """A conversation with its normalised transcript."""

    events: list[Event]
    calls: list[ToolCall]
    catalogue: list[CatalogueEntry]


class Subject(WireObject):
    """What a verdict is about."""

    level: Level
    turn: Index | None
    event: Index | None
    call_id: str | None
    expectation: str | None = Field(description="RFC 6901 pointer of the expectation inside the conversation.")


class Coverage(WireObject):
    """How much of the transcript the judge saw."""

    events_seen: Count
    events_total: Count
    chunks: Count


class Votes(WireObject):
    """How many answers were asked for, and how many agree with the label."""

    cast: Count
    agree: Count


class Verdict(WireObject):
    """A judge's answer about one subject."""

    id: VerdictRef
    object: Literal["verdict"]
    evaluation_id: EvaluationRef
    conversation: Index
    dimension: str
    family: Family
    judge_version: str
    subject: Subject
    status: VerdictStatus
    reason_code: str | None = Field(description="Why it was not scored; null exactly when it was.")
    passed: bool | None = Field(description="Null exactly when not scored.")
    label: str | None
    score: float | None
    scale: Scale
    threshold: float | None
    rationale: str
    method: Method
    model: str | None
    prompt_sha256: Sha256 | None
    coverage: Coverage | None
    votes: Votes | None
    disputed: bool
    dropped_findings: Count = Field(description="Findings whose evidence is not in the transcript.")
    details: dict[str, Any] = Field(description="Per judge; its schema is at `/v1/judges`.")
    usage: Usage
    attempts: Count
    created_at: Time


class Evidence(WireObject):
    """A place in the conversation and the words that stand there, checked by the service."""

    source: Source
    event: Index | None = Field(description="Index in `source`.")
    pointer: str = Field(description="RFC 6901 inside `source[event]`.")
    start: int | None = Field(description="In code points of the decoded string; null when the value is no string.")
    end: int | None
    quote: str = Field(description="The words, or the value's JSON text.")
    role: Role


class Finding(WireObject):
    """One concrete violation; at severity info, a remark."""

    id: FindingRef
    object: Literal["finding"]
    evaluation_id: EvaluationRef
    verdict_id: VerdictRef
    conversation: Index
    turn: Index | None
    dimension: str
    family: Family
    code: str
    severity: Severity
    title: str
    description: str
    why_it_matters: str
    evidence: list[Evidence] = Field(min_length=1)


class ConversationList(WireObject):
    """A part of the list of conversations."""

    object: Literal["list"]
    data: list[Conversation]
    first_id: ConversationRef | None
    last_id: ConversationRef | None
    has_more: bool


class VerdictList(WireObject):
    """A part of the list of verdicts."""

    object: Literal["list"]
    data: list[Verdict]
    first_id: VerdictRef | None
    last_id: VerdictRef | None
    has_more: bool


class FindingList(WireObject):
    """A part of the list of findings."""

    object: Literal["list"]
    data: list[Finding]
    first_id: FindingRef | None
    last_id: FindingRef | None
    has_more: bool
