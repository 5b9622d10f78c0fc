"""Verdicts and findings as rows, and back."""

import hashlib
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from sqlalchemy import Row

from app.evaluation.model import StoredFinding, StoredVerdict
from app.findings.model import Coverage, Decision, Evidence, Finding, Subject, Usage, Verdict, Votes, rank
from app.ids import new_id
from app.storage.columns import storable

_WHOLE = -1
"""Position of what is about the conversation as a whole: before its first event."""


def key_sha256(verdict: Verdict) -> str:
    """Return the hash of what makes a verdict unique within its conversation."""
    return hashlib.sha256("\0".join(storable(part) for part in verdict.key).encode()).hexdigest()


def verdict_row(conversation: Row[Any], verdict: Verdict) -> dict[str, Any]:
    """Return the row of a verdict about a conversation (its id, workspace, evaluation and index)."""
    decision, subject, usage = verdict.decision, verdict.subject, verdict.decision.usage
    coverage, votes = decision.coverage, decision.votes
    return {
        "id": new_id("verdict"),
        "workspace_id": conversation.workspace_id,
        "evaluation_id": conversation.evaluation_id,
        "conversation_id": conversation.id,
        "idx": conversation.idx,
        "position": _WHOLE if subject.event is None else subject.event,
        "key_sha256": key_sha256(verdict),
        "dimension": verdict.dimension,
        "family": verdict.family,
        "judge_version": verdict.judge_version,
        "level": subject.level,
        "turn": subject.turn,
        "event": subject.event,
        "call_id": subject.call_id,
        "expectation": subject.expectation,
        "scale": verdict.scale,
        "threshold": verdict.threshold,
        "status": decision.status,
        "reason_code": decision.reason_code,
        "passed": decision.passed,
        "label": decision.label,
        "score": decision.score,
        "rationale": decision.rationale,
        "method": decision.method,
        "model": decision.model,
        "prompt_sha256": decision.prompt_sha256,
        "coverage": coverage and [coverage.events_seen, coverage.events_total, coverage.chunks],
        "votes": votes and [votes.cast, votes.agree],
        "disputed": decision.disputed,
        "dropped_findings": decision.dropped_findings,
        "details": decision.details,
        "requests": usage.requests,
        "prompt_tokens": usage.prompt_tokens,
        "cached_tokens": usage.cached_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost_usd": usage.cost_usd,
        "attempts": decision.attempts,
    }


def finding_rows(verdict_row: dict[str, Any], findings: tuple[Finding, ...]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a verdict's findings."""
    for ordinal, finding in enumerate(findings):
        yield {
            "id": new_id("finding"),
            "workspace_id": verdict_row["workspace_id"],
            "evaluation_id": verdict_row["evaluation_id"],
            "verdict_id": verdict_row["id"],
            "ordinal": ordinal,
            "idx": verdict_row["idx"],
            "position": _WHOLE if finding.event is None else finding.event,
            "dimension": verdict_row["dimension"],
            "family": verdict_row["family"],
            "code": finding.code,
            "severity": finding.severity,
            "severity_rank": rank(finding.severity),
            "title": finding.title,
            "description": finding.description,
            "why_it_matters": finding.why_it_matters,
            "evidence": [
                [one.source, one.event, one.pointer, one.start, one.end, one.quote, one.role]
                for one in finding.evidence
            ],
            "event": finding.event,
            "turn": finding.turn,
        }


def subject_of_row(row: Row[Any]) -> Subject:
    """Return what a verdict is about."""
    return Subject(row.level, row.turn, row.event, row.call_id, row.expectation)


def verdict_of_row(row: Row[Any]) -> StoredVerdict:
    """Return a verdict without its findings."""
    decision = _recalled(
        status=row.status,
        reason_code=row.reason_code,
        passed=row.passed,
        label=row.label,
        score=row.score,
        rationale=row.rationale,
        method=row.method,
        findings=(),
        model=row.model,
        prompt_sha256=row.prompt_sha256,
        coverage=row.coverage and Coverage(*row.coverage),
        votes=row.votes and Votes(*row.votes),
        disputed=row.disputed,
        dropped_findings=row.dropped_findings,
        details=row.details,
        usage=Usage(row.requests, row.prompt_tokens, row.cached_tokens, row.completion_tokens, row.cost_usd),
        attempts=row.attempts,
    )
    verdict = Verdict(
        row.dimension, row.family, row.judge_version, subject_of_row(row), row.scale, row.threshold, decision
    )
    return StoredVerdict(row.id, row.evaluation_id, row.idx, verdict, row.created_at)


def _recalled(**values: Any) -> Decision:
    """Return a decision as it was stored, but for its findings.

    Its constructor would demand them of a failed one; it did so when the decision was made.
    """
    decision = object.__new__(Decision)
    for one in fields(Decision):
        object.__setattr__(decision, one.name, values[one.name])
    return decision


def finding_of_row(row: Row[Any]) -> StoredFinding:
    """Return a finding."""
    finding = Finding(
        code=row.code,
        severity=row.severity,
        title=row.title,
        description=row.description,
        why_it_matters=row.why_it_matters,
        evidence=tuple(Evidence(*one) for one in row.evidence),
        event=row.event,
        turn=row.turn,
    )
    return StoredFinding(row.id, row.evaluation_id, row.verdict_id, row.idx, row.dimension, row.family, finding)
