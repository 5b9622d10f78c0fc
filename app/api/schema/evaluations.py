"""The evaluation object."""

from typing import Literal

from pydantic import Field

from app.api.schema.base import Count, EvaluationRef, Index, Time, WireObject
from app.evaluation.model import Status
from app.findings.rollup import Result


class Progress(WireObject):
    """Conversations by state."""

    total: Count
    queued: Count
    in_progress: Count
    completed: Count
    failed: Count
    canceled: Count


class VerdictCounts(WireObject):
    """Verdicts by what became of them. Only `passed` and `failed` enter a pass rate."""

    passed: Count
    failed: Count
    not_applicable: Count = Field(description="The question did not arise.")
    not_scored: Count = Field(description="The question arose, but material was missing or the judge abstained.")
    error: Count = Field(description="The judge's infrastructure failed after its retries.")


class DimensionCounts(VerdictCounts):
    """Verdicts of one dimension."""

    pass_rate: float | None = Field(ge=0, le=1, description="passed / (passed + failed); null when nothing was scored.")


class FindingCounts(WireObject):
    """Findings by severity."""

    info: Count
    low: Count
    medium: Count
    high: Count
    critical: Count


class Options(WireObject):
    """How it is judged."""

    model: str | None = Field(description="The judge model asked for; null: the installation's default.")
    votes: int = Field(description="Answers a model judge asks for: 1, 3 or 5.")
    scope: Literal["all_turns", "last_turn"]
    max_tokens: int | None = Field(description="Token budget of the whole evaluation.")
    max_cost_usd: float | None = Field(description="Cost budget of the whole evaluation.")


class Usage(WireObject):
    """What model calls cost, failures and retries included."""

    requests: Count
    prompt_tokens: Count
    cached_tokens: Count
    completion_tokens: Count
    cost_usd: float | None = Field(description="Null when any price is unknown.")


class Webhook(WireObject):
    """Where the end of the evaluation is told."""

    url: str


class NewWebhook(Webhook):
    """A webhook whose secret was made by the service: shown in the 202 and never again."""

    secret: str = Field(description="`whsec_…`: keep it, to check signatures with.")


class Warning(WireObject):
    """Something a client should know about an accepted conversation."""

    pointer: str = Field(description="RFC 6901, inside the conversation; from the body's root when that is null.")
    code: str
    message: str
    count: int = Field(ge=1, description="How often it was met.")


class EvaluationWarning(Warning):
    """A warning and the conversation it is about."""

    conversation: Index | None = Field(description="Null: the request as a whole.")


class Evaluation(WireObject):
    """One accepted request and everything derived from it."""

    id: EvaluationRef
    object: Literal["forensic_evaluation"]
    name: str | None
    metadata: dict[str, str] | None
    status: Status = Field(description="queued → in_progress → completed | failed | canceled.")
    result: Result | None = Field(
        description="`fail`: a finding of medium or worse, or a failed expectation. `error`: nothing but errors. "
        "`partial`: some judge failed. `pass`: otherwise. Null: not ended, canceled, or nothing was scored."
    )
    result_reason: str | None = Field(description="Why there is no result, e.g. `nothing_scored`.")
    created_at: Time
    started_at: Time | None
    finished_at: Time | None
    progress: Progress
    verdicts: VerdictCounts
    by_dimension: dict[str, DimensionCounts] = Field(description="Grows as conversations end.")
    findings: FindingCounts
    judges: list[str] = Field(description="The judges that were asked.")
    options: Options
    usage: Usage
    webhook: Webhook | None
    rerunnable: Literal[False] = Field(description="Fixed transcripts cannot be re-run.")
    warnings: list[EvaluationWarning]


class NewEvaluation(Evaluation):
    """An evaluation as the 202 shows it."""

    webhook: NewWebhook | Webhook | None


class EvaluationList(WireObject):
    """A part of the list of evaluations."""

    object: Literal["list"]
    data: list[Evaluation]
    first_id: EvaluationRef | None
    last_id: EvaluationRef | None = Field(description="Give it as `after` to get the next part.")
    has_more: bool
