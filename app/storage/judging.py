"""Writes of a worker while it judges, each fenced by its lease: verdicts with their findings, and their tally."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, bindparam, exists, func, select
from sqlalchemy.dialects.postgresql import insert

from app.findings.model import SEVERITIES, Usage, Verdict
from app.findings.rollup import Counts, Tally, count_key
from app.pipeline.values import Lease
from app.storage.evaluation_rows import usage_of_row
from app.storage.leasing import of_lease, still_ours
from app.storage.reading import DatabaseReader
from app.storage.schema import conversations, findings, verdicts
from app.storage.verdict_rows import finding_rows, verdict_row

_LOCK = (
    select(*conversations.c["id", "workspace_id", "evaluation_id", "idx"])
    .where(still_ours)
    .with_for_update(key_share=True)
)
_ADD_VERDICT = insert(verdicts).on_conflict_do_nothing(index_elements=["conversation_id", "key_sha256"])
_FINDING_COLUMNS = [column.name for column in findings.c]
# A verdict that was there already has another id; its findings are there already, too.
_ADD_FINDING = insert(findings).from_select(
    _FINDING_COLUMNS,
    select(*(bindparam(column.name, type_=column.type) for column in findings.c)).where(
        exists().where(verdicts.c.id == bindparam("verdict_id"))
    ),
)
_STORED = select(verdicts.c.id).where(verdicts.c.conversation_id == bindparam("conversation"))
_MANY = 50
"""Findings from which COPY is faster than one INSERT each, though it must be told which verdicts are new."""
_PRICED = verdicts.c.cost_usd.is_not(None)
_COUNTED = ("requests", "prompt_tokens", "cached_tokens", "completion_tokens", "cost_usd")


def _tallied(where: ColumnElement[bool]) -> tuple[Any, Any]:
    """Return statements that count verdicts and findings of the conversations that match."""
    of_verdicts = (
        select(
            *verdicts.c["dimension", "family", "status", "passed"],
            func.count().label("number"),
            *(func.coalesce(func.sum(verdicts.c[name]), 0).label(name) for name in _COUNTED),
            func.coalesce(func.sum(verdicts.c.requests).filter(~_PRICED), 0).label("unpriced_requests"),
        )
        .join_from(verdicts, conversations)
        .where(where)
        .group_by(*verdicts.c["dimension", "family", "status", "passed"])
    )
    of_findings = (
        select(findings.c.severity, func.count().label("number"))
        .join_from(findings, verdicts)
        .join(conversations)
        .where(where)
        .group_by(findings.c.severity)
    )
    return of_verdicts, of_findings


_OF_CONVERSATION = _tallied(conversations.c.id == bindparam("conversation"))
_OF_CANCELED = _tallied(
    and_(conversations.c.evaluation_id == bindparam("evaluation"), conversations.c.status == "canceled")
)


class Judging(DatabaseReader):
    """The part of the Transaction port that keeps what judges say."""

    async def save_verdicts(self, lease: Lease, verdicts: Sequence[Verdict]) -> bool:
        """Store verdicts and their findings, each (dimension, subject, version) once; False when fenced out.

        The number of statements does not depend on theirs.
        """
        conversation = await self.one(_LOCK, of_lease(lease))
        if conversation is None:
            return False
        pairs = [(verdict_row(conversation, verdict), verdict.decision.findings) for verdict in verdicts]
        found = [row for verdict, its_findings in pairs for row in finding_rows(verdict, its_findings)]
        if pairs:
            await self.run(_ADD_VERDICT, [row for row, _ in pairs])
        if len(found) >= _MANY:
            stored = set((await self.run(_STORED, {"conversation": conversation.id})).scalars())
            await self.insert_many(findings, [row for row in found if row["verdict_id"] in stored])
        elif found:
            await self.run(_ADD_FINDING, found)
        return True

    async def conversation_tally(self, lease: Lease) -> Tally | None:
        """Lock the conversation and return the tally of all its stored verdicts; None when fenced out."""
        if await self.one(_LOCK, of_lease(lease)) is None:
            return None
        return await self._tally(_OF_CONVERSATION, {"conversation": lease.conversation_id})

    async def tally_of_canceled(self, evaluation_id: str) -> Tally:
        """Return the tally of verdicts stored about conversations that were canceled before they ended."""
        return await self._tally(_OF_CANCELED, {"evaluation": evaluation_id})

    async def _tally(self, statements: tuple[Any, Any], place: dict[str, str]) -> Tally:
        groups = (await self.run(statements[0], place)).all()
        severities = {row.severity: row.number for row in await self.run(statements[1], place)}
        by_dimension: dict[str, Counts] = {}
        for row in groups:
            by_dimension[row.dimension] = by_dimension.get(row.dimension, Counts()) + _counts(row)
        return Tally(
            sum(by_dimension.values(), start=Counts()),
            by_dimension,
            {severity: severities.get(severity, 0) for severity in SEVERITIES},
            sum(row.number for row in groups if row.family == "expectation" and row.passed is False),
            sum((usage_of_row(row, row.unpriced_requests) for row in groups), start=Usage()),
        )


def _counts(row: Row[Any]) -> Counts:
    """Return the counts of verdicts that have dimension, family, status and outcome in common."""
    return Counts(**{count_key(row.status, row.passed): row.number})
