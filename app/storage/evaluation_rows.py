"""Evaluations and conversations as rows, and back."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import Row

from app.evaluation.model import (
    Conversation,
    Evaluation,
    EvaluationWarning,
    NewConversation,
    Options,
    Progress,
)
from app.findings.model import SEVERITIES, Usage
from app.findings.rollup import COUNT_KEYS, Counts, Tally
from app.ids import new_id
from app.judges.contract import Document, Principle, Target
from app.transcripts.model import Warning_

USAGE_COUNTERS = (
    "requests",
    "prompt_tokens",
    "cached_tokens",
    "completion_tokens",
    "unpriced_requests",
    "cost_usd",
)
COUNTERS = (
    *(f"verdicts_{key}" for key in COUNT_KEYS),
    *(f"findings_{severity}" for severity in SEVERITIES),
    "failed_expectations",
    *USAGE_COUNTERS,
)
"""Columns of an evaluation to which a conversation's tally is added."""


def counters(tally: Tally) -> dict[str, float]:
    """Return a tally as increments by column, ``by_dimension`` apart."""
    return {
        **{f"verdicts_{key}": getattr(tally.verdicts, key) for key in COUNT_KEYS},
        **{f"findings_{severity}": tally.findings.get(severity, 0) for severity in SEVERITIES},
        "failed_expectations": tally.failed_expectations,
        **usage_counters(tally.usage),
    }


def usage_counters(usage: Usage) -> dict[str, float]:
    """Return usage as increments by column."""
    return {
        "requests": usage.requests,
        "prompt_tokens": usage.prompt_tokens,
        "cached_tokens": usage.cached_tokens,
        "completion_tokens": usage.completion_tokens,
        "unpriced_requests": usage.requests if usage.cost_usd is None else 0,
        "cost_usd": usage.cost_usd or 0.0,
    }


def tally_of_row(row: Row[Any]) -> Tally:
    """Return what an evaluation's columns add up to."""
    return Tally(
        Counts(*(getattr(row, f"verdicts_{key}") for key in COUNT_KEYS)),
        dimensions(row.by_dimension),
        {severity: getattr(row, f"findings_{severity}") for severity in SEVERITIES},
        row.failed_expectations,
        usage_of_row(row, row.unpriced_requests),
    )


def usage_of_row(row: Row[Any], unpriced_requests: int) -> Usage:
    """Return usage, its cost None where anything is unpriced."""
    priced = row.requests and not unpriced_requests
    return Usage(
        row.requests, row.prompt_tokens, row.cached_tokens, row.completion_tokens, row.cost_usd if priced else None
    )


def dimensions(stored: Mapping[str, list[int]]) -> dict[str, Counts]:
    """Return the counts by dimension from their JSON."""
    return {name: Counts(*counts) for name, counts in stored.items()}


def dimensions_json(counts: Mapping[str, Counts]) -> dict[str, list[int]]:
    """Return the counts by dimension for JSON."""
    return {name: [getattr(one, key) for key in COUNT_KEYS] for name, one in counts.items()}


def evaluation_of_row(row: Row[Any]) -> Evaluation:
    """Return an evaluation from its row joined with its request's."""
    return Evaluation(
        id=row.id,
        workspace_id=row.workspace_id,
        name=row.name,
        metadata=row.metadata,
        status=row.status,
        result=row.result,
        result_reason=row.result_reason,
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        progress=Progress(row.total, row.queued, row.in_progress, row.completed, row.failed, row.canceled),
        tally=tally_of_row(row),
        judges=tuple(row.judges),
        options=Options(**row.options),
        webhook_url=row.webhook_url,
        warnings=tuple(EvaluationWarning(conversation, Warning_(*rest)) for conversation, *rest in row.warnings),
        revision=row.revision,
    )


def evaluation_warnings_json(warnings: tuple[EvaluationWarning, ...]) -> list[list[Any]]:
    """Return the warnings of an evaluation for JSON."""
    return [[one.conversation, *_warning_json(one.warning)] for one in warnings]


def _warning_json(warning: Warning_) -> list[Any]:
    return [warning.pointer, warning.code, warning.message, warning.count]


def options_json(options: Options) -> dict[str, Any]:
    """Return options for JSON."""
    return asdict(options)


def target_json(target: Target | None) -> dict[str, Any] | None:
    """Return a target for JSON."""
    return None if target is None else asdict(target)


def target_of_json(stored: dict[str, Any] | None) -> Target | None:
    """Return a target from its JSON."""
    if stored is None:
        return None
    principles = (Principle(**{**one, "tags": tuple(one["tags"])}) for one in stored["principles"])
    return Target(stored["description"], tuple(principles), tuple(Document(**one) for one in stored["documents"]))


def conversation_row(workspace_id: str, evaluation_id: str, new: NewConversation) -> dict[str, Any]:
    """Return the row of a conversation; what is not here has a default."""
    return {
        "id": new_id("conv"),
        "workspace_id": workspace_id,
        "evaluation_id": evaluation_id,
        "idx": new.index,
        "format": new.format,
        "sha256": new.sha256,
        "stored_sha256": new.stored_sha256,
        "bytes": new.size,
        "client_id": new.client_id,
        "metadata": new.metadata,
        "redactions": new.redactions or None,
        "warnings": [_warning_json(warning) for warning in new.warnings] or None,
    }


def conversation_of_row(row: Row[Any]) -> Conversation:
    """Return a conversation from its row."""
    return Conversation(
        id=row.id,
        evaluation_id=row.evaluation_id,
        index=row.idx,
        client_id=row.client_id,
        metadata=row.metadata,
        format=row.format,
        status=row.status,
        result=row.result,
        sha256=row.sha256,
        stored_sha256=row.stored_sha256,
        bytes=row.bytes,
        redactions=tuple(row.redactions or ()),
        warnings=tuple(Warning_(*one) for one in row.warnings or ()),
    )
