"""Reads. Everything a client can see is found by workspace and id together, so nothing of others is ever a result."""

import hashlib
from typing import Any

from sqlalchemy import ColumnElement, Executable, Row, Table, bindparam, select

from app.evaluation.model import Conversation, Evaluation, StoredFinding, StoredVerdict
from app.findings.model import SEVERITIES
from app.pipeline.values import ApiKey, ConversationFilter, EvaluationFilter, FindingFilter, Page, Slice, VerdictFilter
from app.storage.evaluation_rows import conversation_of_row, evaluation_of_row
from app.storage.paging import Listing, among, holds
from app.storage.schema import (
    api_keys,
    conversation_bodies,
    conversations,
    evaluation_requests,
    evaluations,
    findings,
    idempotency_keys,
    verdicts,
)
from app.storage.session import Session
from app.storage.verdict_rows import finding_of_row, verdict_of_row

_EVALUATIONS = select(
    *(column for column in evaluations.c if column.name != "webhook_secret"),
    *(evaluation_requests.c[name] for name in ("judges", "options", "metadata", "warnings")),
).join_from(evaluations, evaluation_requests)
_EVALUATION = _EVALUATIONS.where(
    evaluations.c.id == bindparam("evaluation"), evaluations.c.workspace_id == bindparam("workspace")
)
_place = (
    conversations.c.evaluation_id == bindparam("evaluation"),
    conversations.c.idx == bindparam("index"),
    conversations.c.workspace_id == bindparam("workspace"),
)
_CONVERSATION = select(conversations).where(*_place)
_BODY = select(conversation_bodies.c.body).join_from(conversation_bodies, conversations).where(*_place)
_KEY = select(*api_keys.c["id", "workspace_id", "scopes"]).where(
    api_keys.c.key_sha256 == bindparam("key"), api_keys.c.revoked_at.is_(None)
)
_REMEMBERED = select(*idempotency_keys.c["body_sha256", "evaluation_id"]).where(
    idempotency_keys.c.workspace_id == bindparam("workspace"), idempotency_keys.c.key_sha256 == bindparam("key")
)
_IN_CONVERSATION = ("idx", "position", "id")
_EVALUATION_LIST = Listing(_EVALUATIONS, evaluations, ("id",), evaluation_of_row)
_CONVERSATION_LIST = Listing(select(conversations), conversations, ("idx", "id"), conversation_of_row)
_VERDICT_LIST = Listing(select(verdicts), verdicts, _IN_CONVERSATION, verdict_of_row)
_FINDING_LIST = Listing(select(findings), findings, _IN_CONVERSATION, finding_of_row)


def hash_of_key(key: str) -> str:
    """Return the hash under which an Idempotency-Key is remembered: it is a client's text of any length."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


class DatabaseReader(Session):
    """The Reader port; see there for what each method promises."""

    async def find_key(self, key_sha256: str) -> ApiKey | None:
        """Return the live API key with this hash."""
        row = await self.one(_KEY, {"key": key_sha256})
        return None if row is None else ApiKey(row.id, row.workspace_id, frozenset(row.scopes))

    async def evaluation(self, workspace_id: str, evaluation_id: str) -> Evaluation | None:
        """Return an evaluation; one primary-key read."""
        row = await self.one(_EVALUATION, {"evaluation": evaluation_id, "workspace": workspace_id})
        return None if row is None else evaluation_of_row(row)

    async def evaluations(self, workspace_id: str, where: EvaluationFilter, page: Page) -> Slice[Evaluation]:
        """Return evaluations by creation, which is the order of their ids."""
        conditions = among(evaluations, status=where.status, result=where.result)
        if where.created_after is not None:
            conditions.append(evaluations.c.created_at > where.created_after)
        if where.created_before is not None:
            conditions.append(evaluations.c.created_at < where.created_before)
        scope = [evaluations.c.workspace_id == workspace_id]
        return await _EVALUATION_LIST.page(self, scope, conditions, page)

    async def conversation(self, workspace_id: str, evaluation_id: str, index: int) -> Conversation | None:
        """Return a conversation without its body."""
        row = await self._at(_CONVERSATION, workspace_id, evaluation_id, index)
        return None if row is None else conversation_of_row(row)

    async def body(self, workspace_id: str, evaluation_id: str, index: int) -> bytes | None:
        """Return the compressed stored bytes of a conversation."""
        row = await self._at(_BODY, workspace_id, evaluation_id, index)
        return None if row is None else row.body

    async def conversations(
        self, workspace_id: str, evaluation_id: str, where: ConversationFilter, page: Page
    ) -> Slice[Conversation]:
        """Return conversations by index."""
        scope = _within(conversations, workspace_id, evaluation_id)
        conditions = among(conversations, status=where.status, result=where.result)
        return await _CONVERSATION_LIST.page(self, scope, conditions, page)

    async def verdicts(
        self, workspace_id: str, evaluation_id: str, where: VerdictFilter, page: Page
    ) -> Slice[StoredVerdict]:
        """Return verdicts, without findings, by conversation, event and id."""
        scope = _within(verdicts, workspace_id, evaluation_id)
        conditions = among(
            verdicts,
            idx=where.conversation,
            dimension=where.dimension,
            family=where.family,
            status=where.status,
            passed=() if where.passed is None else (where.passed,),
        )
        return await _VERDICT_LIST.page(self, scope, conditions, page)

    async def findings(
        self, workspace_id: str, evaluation_id: str, where: FindingFilter, page: Page
    ) -> Slice[StoredFinding]:
        """Return findings by conversation, event and id."""
        scope = _within(findings, workspace_id, evaluation_id)
        conditions = among(
            findings,
            idx=where.conversation,
            dimension=where.dimension,
            family=where.family,
            severity=where.severity,
            code=where.code,
        )
        if where.min_severity is not None:
            conditions.append(findings.c.severity_rank >= SEVERITIES.index(where.min_severity))
        return await _FINDING_LIST.page(self, scope, conditions, page)

    async def idempotent(self, workspace_id: str, key: str) -> tuple[str, str] | None:
        """Return (body sha256, evaluation id) remembered under an Idempotency-Key."""
        row = await self.one(_REMEMBERED, {"workspace": workspace_id, "key": hash_of_key(key)})
        return None if row is None else (row.body_sha256, row.evaluation_id)

    async def _at(self, statement: Executable, workspace_id: str, evaluation_id: str, index: int) -> Row[Any] | None:
        if not holds(index):
            return None
        return await self.one(statement, {"workspace": workspace_id, "evaluation": evaluation_id, "index": index})


def _within(table: Table, workspace_id: str, evaluation_id: str) -> list[ColumnElement[bool]]:
    return [table.c.evaluation_id == evaluation_id, table.c.workspace_id == workspace_id]
