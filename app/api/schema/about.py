"""Judges, health, and problems."""

from typing import Any, Literal

from pydantic import Field

from app.api.schema.base import Index, WireObject
from app.findings.model import Family, Level, Method, Scale, Severity


class Judge(WireObject):
    """One dimension that can be judged."""

    id: str = Field(description="The name again: what `judges` of a request and `dimension` of a verdict hold.")
    object: Literal["judge"]
    name: str
    family: Family
    version: str = Field(description="Changes with the prompt or the rule; every verdict stores it.")
    question: str
    level: Level
    method: Method = Field(description="`llm` and `hybrid` need a judge model; without one they do not score.")
    scale: Scale
    threshold: float | None
    default: bool = Field(description="Whether it is asked when a request names no judges.")
    labels: list[str]
    severities: dict[str, Severity] = Field(description="Every finding code it can give.")
    reasons: dict[str, str] = Field(description="Every reason it can give for not scoring.")
    details_schema: dict[str, Any] = Field(description="JSON Schema of a verdict's `details`.")


class JudgeList(WireObject):
    """All judges, in catalogue order."""

    object: Literal["list"]
    data: list[Judge]
    first_id: str | None
    last_id: str | None
    has_more: bool


class Health(WireObject):
    """The process answers."""

    status: Literal["ok"]


class Readiness(WireObject):
    """The service can do its work. Without the queue it still accepts evaluations, and judges them late."""

    status: Literal["ready"]
    store: Literal["ok"]
    queue: Literal["ok", "unavailable"]


class ProblemItem(WireObject):
    """One violation of a 422."""

    pointer: str = Field(description="RFC 6901 from the body's root; empty for the body as a whole and for parameters.")
    code: str
    message: str = Field(max_length=300)
    conversation: Index | None = Field(description="Index of the conversation it is in.")
    line: int | None = Field(default=None, ge=1, description="Only for a body that is not JSON.")
    column: int | None = Field(default=None, ge=1, description="Only for a body that is not JSON.")
    parameter: str | None = Field(default=None, description="Only for a query parameter or header.")


class Problem(WireObject):
    """Problem details (RFC 9457)."""

    type: Literal["about:blank"]
    title: str
    status: int
    detail: str
    code: str = Field(description="The stable name of what went wrong.")
    request_id: str = Field(description="The same as X-Request-Id: quote it when you ask for help.")


class NotReady(Problem):
    """Why the service cannot do its work."""

    store: Literal["ok", "unavailable"]
    queue: Literal["ok", "unavailable"]


class InvalidRequest(Problem):
    """A request that breaks rules; nothing was stored."""

    errors: list[ProblemItem] = Field(max_length=100, description="In document order; the first of them when many.")
    error_count: int | None = Field(ge=0, description="How many there are; null: more than anyone counted.")
    truncated: bool = Field(description="Whether `errors` leaves some out.")
