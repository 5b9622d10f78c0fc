"""Evaluations, conversations and verdicts for the tests, with as little said as each needs."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import text

from app.evaluation.model import EvaluationRequest, NewConversation, WebhookRequest
from app.findings.model import (
    Decision,
    Evidence,
    Family,
    Finding,
    Severity,
    Subject,
    Usage,
    Verdict,
    errored,
    failed,
    not_applicable,
    passed,
)
from app.findings.rollup import roll_up
from app.ids import new_id
from app.pipeline.ports import Transaction
from app.pipeline.values import Claim, Closing, NewEvaluation, Page
from app.storage.store import DatabaseStore

SECRET_KEY = "a secret of the tests, long enough"  # noqa: S105 - guards nothing
WORKSPACE = "ws_one"
OTHER_WORKSPACE = "ws_two"
EVERYTHING = Page(limit=1000)


def conversation(index: int, body: bytes = b"body", **rest: Any) -> NewConversation:
    """Return a conversation whose hashes are right."""
    digest = hashlib.sha256(body).hexdigest()
    return NewConversation(index, "items", body, len(body), digest, digest, **rest)


def finding(severity: Severity = "medium", event: int | None = None, **rest: Any) -> Finding:
    """Return a finding with one piece of evidence."""
    evidence = (Evidence("items", event or 0, "/content", 0, 4, "text"),)
    values = {"title": "t", "description": "d", "why_it_matters": "w", "code": "wrong", "evidence": evidence}
    return Finding(severity=severity, event=event, **{**values, **rest})


def verdict(
    dimension: str = "relevance",
    decision: Decision | None = None,
    *,
    family: Family = "output",
    version: str = "1",
    subject: Subject | None = None,
) -> Verdict:
    """Return a verdict, passed unless said otherwise."""
    return Verdict(dimension, family, version, subject or Subject(), "binary", None, decision or passed("fine"))


SOME_VERDICTS = (
    verdict("relevance", passed("fine", usage=Usage(1, 10, 2, 3, 0.5))),
    verdict("coherence", failed("bad", [finding("high"), finding("low", event=2)], usage=Usage(2, 20, 0, 6, 0.25))),
    verdict("coherence", not_applicable("empty", "nothing"), subject=Subject("turn", turn=1, event=3)),
    verdict("tool_selection", errored("timeout", "late"), family="tool", subject=Subject("call", 1, 4, "call_1")),
)


async def submit(
    store: DatabaseStore, number: int = 1, *, workspace_id: str = WORKSPACE, webhook: bool = False, **request: Any
) -> str:
    """Store an evaluation with so many conversations and return its id."""
    evaluation_id = new_id("feval")
    wanted = EvaluationRequest(
        judges=("relevance",), webhook=WebhookRequest("https://example.org/hook") if webhook else None, **request
    )
    async with store.begin() as tx:
        if workspace_id != WORKSPACE:
            await tx.ensure_key("f" * 64, name="other", workspace_id=workspace_id, scopes=[])
        await tx.add_evaluation(NewEvaluation(evaluation_id, workspace_id, wanted, number, (), None))
        batch = [conversation(index) for index in range(number)]
        await tx.add_conversations(workspace_id, evaluation_id, batch)
    return evaluation_id


async def conversation_ids(store: DatabaseStore, evaluation_id: str, workspace_id: str = WORKSPACE) -> list[str]:
    """Return the ids of an evaluation's conversations, by index."""
    statement = "SELECT id FROM conversations WHERE evaluation_id = :id ORDER BY idx"
    return [row[0] for row in await sql(store, statement, id=evaluation_id)]


async def claim(store: DatabaseStore, conversation_id: str, lease_seconds: float = 60) -> Claim | None:
    """Claim in a transaction of its own."""
    async with store.begin() as tx:
        return await tx.claim(conversation_id, lease_seconds)


async def claim_all(store: DatabaseStore, evaluation_id: str, lease_seconds: float = 60) -> list[Claim]:
    """Claim every conversation of an evaluation."""
    claims = [await claim(store, one, lease_seconds) for one in await conversation_ids(store, evaluation_id)]
    assert None not in claims
    return [one for one in claims if one is not None]


async def save(store: DatabaseStore, held: Claim, verdicts: Sequence[Verdict]) -> bool:
    """Save verdicts in a transaction of its own."""
    async with store.begin() as tx:
        return await tx.save_verdicts(held.lease, verdicts)


async def finish(store: DatabaseStore, held: Claim) -> Closing | None:
    """Finish a conversation as the pipeline does, closing the evaluation with the last."""
    async with store.begin() as tx:
        return await finish_in(tx, held)


async def finish_in(tx: Transaction, held: Claim) -> Closing | None:
    """Do what ``finish`` does in a transaction that is open."""
    tally = await tx.conversation_tally(held.lease)
    if tally is None:
        return None
    closing = await tx.finish_conversation(held.lease, "completed", roll_up(tally)[0], tally)
    if closing is not None and closing.remaining == 0:
        await tx.close_evaluation(closing.evaluation_id, "completed", *roll_up(closing.tally))
        await tx.add_delivery(closing.evaluation_id, "forensic_evaluation.completed")
    return closing


async def sql(store: DatabaseStore, statement: str, **parameters: Any) -> list[Any]:
    """Run SQL beside the port, to see what is really there."""
    async with store._engine.begin() as connection:
        result = await connection.execute(text(statement), parameters)
        return list(result.all()) if result.returns_rows else []


async def counts(store: DatabaseStore, tables: Iterable[str]) -> dict[str, int]:
    """Return the number of rows of each table."""
    return {table: (await sql(store, f"SELECT count(*) FROM {table}"))[0][0] for table in tables}  # noqa: S608
