"""Query parameters, one model a list.

Whatever a model does not name is refused: a misspelt filter must not look like an answer.
"""

import re
from datetime import UTC, datetime
from typing import Annotated, Literal, TypeAlias

from fastapi import Path
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field
from starlette.convertors import Convertor, register_url_convertor

from app.evaluation import model as evaluation
from app.findings.model import Family, Severity
from app.findings.model import Status as VerdictStatus
from app.findings.rollup import Result
from app.pipeline.errors import CursorError
from app.pipeline.values import ConversationFilter, EvaluationFilter, FindingFilter, Page, VerdictFilter

Order: TypeAlias = Literal["asc", "desc"]
_LARGEST_INDEX = 2**31 - 1
_ID = re.compile(r"[a-z]{1,20}_[0-9a-f]{32}")

EvaluationId = Annotated[str, Path(description="`feval_…`", pattern=r"^feval_[0-9a-f]{32}$")]


class _IndexConvertor(Convertor[int]):
    """An index in a path. Starlette's own would convert five thousand digits, or rather fail to."""

    regex = "[0-9]{1,10}"

    def convert(self, value: str) -> int:
        """Return the number."""
        return int(value)

    def to_string(self, value: int) -> str:
        """Return the digits."""
        return str(value)


register_url_convertor("index", _IndexConvertor())
ConversationIndex = Annotated[int, Path(description="Position in the request, from 0.", ge=0, le=_LARGEST_INDEX)]

_Index = Annotated[int, Field(ge=0, le=_LARGEST_INDEX)]


def _in_utc(moment: datetime) -> datetime:
    """Return the same moment in UTC; the ends of the calendar have none."""
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("is too far from now") from None


_Moment = Annotated[AwareDatetime, AfterValidator(_in_utc)]
_Name = Annotated[str, Field(pattern=r"^[\w.:-]{1,100}$")]


class Query(BaseModel):
    """A closed set of query parameters."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Wait(Query):
    """How a single evaluation is read."""

    wait: float = Field(
        0, ge=0, le=60, description="Seconds to wait for the evaluation to end; then it is returned as it is."
    )


class Export(Query):
    """How an evaluation is exported."""

    format: Literal["jsonl"] = Field("jsonl", description="`jsonl`: one object a line.")


class _List(Query):
    limit: int = Field(20, ge=1, le=100, description="Most objects to return.")
    after: str | None = Field(
        None, max_length=100, description="Id of the last object of the part before, as given in its `last_id`."
    )

    def _page(self, order: Order) -> Page:
        if self.after is not None and not _ID.fullmatch(self.after):
            raise CursorError
        return Page(self.limit, self.after, descending=order == "desc")


class Evaluations(_List):
    """Filters of the list of evaluations. Repeat a parameter to allow several values."""

    order: Order = Field("desc", description="By creation.")
    status: list[evaluation.Status] = Field(default=[], max_length=100, description="Only these states.")
    result: list[Result] = Field(default=[], max_length=100, description="Only these results.")
    created_after: _Moment | None = Field(None, description="Later than this: RFC 3339, or seconds since 1970.")
    created_before: _Moment | None = Field(None, description="Earlier than this: RFC 3339, or seconds since 1970.")

    def page(self) -> Page:
        """Return which part is asked for. Raises CursorError."""
        return self._page(self.order)

    def where(self) -> EvaluationFilter:
        """Return what is asked for."""
        return EvaluationFilter(tuple(self.status), tuple(self.result), self.created_after, self.created_before)


class _Contents(_List):
    order: Order = Field("asc", description="By conversation, then by event.")

    def page(self) -> Page:
        """Return which part is asked for. Raises CursorError."""
        return self._page(self.order)


class Conversations(_Contents):
    """Filters of the list of conversations."""

    status: list[evaluation.Status] = Field(default=[], max_length=100, description="Only these states.")
    result: list[Result] = Field(default=[], max_length=100, description="Only these results.")

    def where(self) -> ConversationFilter:
        """Return what is asked for."""
        return ConversationFilter(tuple(self.status), tuple(self.result))


class _Judged(_Contents):
    conversation: list[_Index] = Field(default=[], max_length=100, description="Only conversations at these indices.")
    dimension: list[_Name] = Field(default=[], max_length=100, description="Only these dimensions.")
    family: list[Family] = Field(default=[], max_length=100, description="Only these families.")


class Verdicts(_Judged):
    """Filters of the list of verdicts."""

    status: list[VerdictStatus] = Field(default=[], max_length=100, description="Only these states.")
    passed: bool | None = Field(None, description="Only scored verdicts that passed, or that did not.")

    def where(self) -> VerdictFilter:
        """Return what is asked for."""
        return VerdictFilter(
            tuple(self.conversation), tuple(self.dimension), tuple(self.family), tuple(self.status), self.passed
        )


class Findings(_Judged):
    """Filters of the list of findings."""

    severity: list[Severity] = Field(default=[], max_length=100, description="Only these severities.")
    code: list[_Name] = Field(default=[], max_length=100, description="Only these codes.")
    min_severity: Severity | None = Field(None, description="This severity and worse.")

    def where(self) -> FindingFilter:
        """Return what is asked for."""
        return FindingFilter(
            tuple(self.conversation),
            tuple(self.dimension),
            tuple(self.family),
            tuple(self.severity),
            tuple(self.code),
            self.min_severity,
        )
