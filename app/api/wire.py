"""The objects of the API as they go over the wire: every key always present, times RFC 3339 UTC.

A status poll is the most frequent request there is, so these are plain functions to plain dicts, encoded by msgspec.
``schema`` describes the same objects for the OpenAPI document; tests hold every real answer against it.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

import msgspec

from app.evaluation.model import Conversation, Evaluation, StoredFinding, StoredVerdict
from app.findings.model import SEVERITIES, Evidence, Usage
from app.findings.rollup import Counts, Tally
from app.judges.contract import Judge
from app.transcripts.model import Warning_

Wire: TypeAlias = dict[str, Any]


def _plain(value: Any) -> Any:
    """Encode what msgspec does not know: read-only mappings, and sets in a stable order."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, frozenset | set):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} does not go over the wire")


_encoder = msgspec.json.Encoder(enc_hook=_plain)


def encode(value: Any) -> bytes:
    """Return compact JSON."""
    return _encoder.encode(value)


def evaluation(one: Evaluation) -> Wire:
    """Return an evaluation."""
    progress = one.progress
    options = one.options
    return {
        "id": one.id,
        "object": "forensic_evaluation",
        "name": one.name,
        "metadata": one.metadata,
        "status": one.status,
        "result": one.result,
        "result_reason": one.result_reason,
        "created_at": _time(one.created_at),
        "started_at": _time(one.started_at),
        "finished_at": _time(one.finished_at),
        "progress": {
            "total": progress.total,
            "queued": progress.queued,
            "in_progress": progress.in_progress,
            "completed": progress.completed,
            "failed": progress.failed,
            "canceled": progress.canceled,
        },
        **_tally(one.tally),
        "judges": one.judges,
        "options": {
            "model": options.model,
            "votes": options.votes,
            "scope": options.scope,
            "max_tokens": options.max_tokens,
            "max_cost_usd": options.max_cost_usd,
        },
        "usage": _usage(one.tally.usage),
        "webhook": None if one.webhook_url is None else {"url": one.webhook_url},
        "rerunnable": False,
        "warnings": [{"conversation": each.conversation, **_warning(each.warning)} for each in one.warnings],
    }


def accepted(one: Evaluation, webhook_secret: str | None) -> Wire:
    """Return an evaluation as the 202 shows it: with the webhook's secret if it was made here."""
    wire = evaluation(one)
    if webhook_secret is not None and wire["webhook"] is not None:
        wire["webhook"]["secret"] = webhook_secret
    return wire


def conversation(one: Conversation) -> Wire:
    """Return a conversation as it is listed."""
    return {**_conversation(one), "warnings": [_warning(each) for each in one.warnings]}


def presented(one: Conversation, content: bytes) -> bytes:
    """Return a conversation with its content, a JSON object that is spliced in as it is: it may be huge.

    The content's warnings include those the conversation was stored with.
    """
    return encode(_conversation(one))[:-1] + b"," + content[1:]


def verdict(one: StoredVerdict) -> Wire:
    """Return a verdict."""
    decided = one.verdict
    decision = decided.decision
    subject = decided.subject
    return {
        "id": one.id,
        "object": "verdict",
        "evaluation_id": one.evaluation_id,
        "conversation": one.conversation,
        "dimension": decided.dimension,
        "family": decided.family,
        "judge_version": decided.judge_version,
        "subject": {
            "level": subject.level,
            "turn": subject.turn,
            "event": subject.event,
            "call_id": subject.call_id,
            "expectation": subject.expectation,
        },
        "status": decision.status,
        "reason_code": decision.reason_code,
        "passed": decision.passed,
        "label": decision.label,
        "score": decision.score,
        "scale": decided.scale,
        "threshold": decided.threshold,
        "rationale": decision.rationale,
        "method": decision.method,
        "model": decision.model,
        "prompt_sha256": decision.prompt_sha256,
        "coverage": decision.coverage,
        "votes": decision.votes,
        "disputed": decision.disputed,
        "dropped_findings": decision.dropped_findings,
        "details": decision.details,
        "usage": _usage(decision.usage),
        "attempts": decision.attempts,
        "created_at": _time(one.created_at),
    }


def finding(one: StoredFinding) -> Wire:
    """Return a finding with its evidence."""
    found = one.finding
    return {
        "id": one.id,
        "object": "finding",
        "evaluation_id": one.evaluation_id,
        "verdict_id": one.verdict_id,
        "conversation": one.conversation,
        "turn": found.turn,
        "dimension": one.dimension,
        "family": one.family,
        "code": found.code,
        "severity": found.severity,
        "title": found.title,
        "description": found.description,
        "why_it_matters": found.why_it_matters,
        "evidence": [_evidence(each) for each in found.evidence],
    }


def judge(one: Judge) -> Wire:
    """Return a judge of the catalogue."""
    return {
        "id": one.name,
        "object": "judge",
        "name": one.name,
        "family": one.family,
        "version": one.version,
        "question": one.question,
        "level": one.level,
        "method": one.method,
        "scale": one.scale,
        "threshold": one.threshold,
        "default": one.default,
        "labels": one.labels,
        "severities": one.severities,
        "reasons": one.reasons,
        "details_schema": one.details_schema,
    }


def listing(data: list[Wire], has_more: bool) -> Wire:
    """Return a list of objects that have ids."""
    return {
        "object": "list",
        "data": data,
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
        "has_more": has_more,
    }


def json_line(one: Evaluation | Conversation | StoredVerdict | StoredFinding) -> bytes:
    """Return an object as one line of an export."""
    return encode(_any(one)) + b"\n"


def _any(one: Evaluation | Conversation | StoredVerdict | StoredFinding) -> Wire:
    match one:
        case Evaluation():
            return evaluation(one)
        case Conversation():
            return conversation(one)
        case StoredVerdict():
            return verdict(one)
        case StoredFinding():
            return finding(one)


def _time(moment: datetime | None) -> str | None:
    return (
        None
        if moment is None
        else moment.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"
    )


def _conversation(one: Conversation) -> Wire:
    return {
        "id": one.id,
        "object": "conversation",
        "index": one.index,
        "client_id": one.client_id,
        "metadata": one.metadata,
        "format": one.format,
        "status": one.status,
        "result": one.result,
        "sha256": one.sha256,
        "stored_sha256": one.stored_sha256,
        "bytes": one.bytes,
        "redactions": one.redactions,
    }


def _tally(tally: Tally) -> Wire:
    return {
        "verdicts": _counts(tally.verdicts),
        "by_dimension": {
            name: {**_counts(counts), "pass_rate": counts.pass_rate} for name, counts in tally.by_dimension.items()
        },
        "findings": {severity: tally.findings.get(severity, 0) for severity in SEVERITIES},
    }


def _counts(counts: Counts) -> Wire:
    return {
        "passed": counts.passed,
        "failed": counts.failed,
        "not_applicable": counts.not_applicable,
        "not_scored": counts.not_scored,
        "error": counts.error,
    }


def _usage(usage: Usage) -> Wire:
    return {
        "requests": usage.requests,
        "prompt_tokens": usage.prompt_tokens,
        "cached_tokens": usage.cached_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost_usd": usage.cost_usd,
    }


def _warning(one: Warning_) -> Wire:
    return {"pointer": one.pointer, "code": one.code, "message": one.message, "count": one.count}


def _evidence(one: Evidence) -> Wire:
    return {
        "source": one.source,
        "event": one.event,
        "pointer": one.pointer,
        "start": one.start,
        "end": one.end,
        "quote": one.quote,
        "role": one.role,
    }
