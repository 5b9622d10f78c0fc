"""Who works on which conversation: publish, claim, beat, put back, reap, as SQL on the conversation's row.

A lease is a token on the row. Whoever takes the conversation over writes another one, and from then on every
statement of the former owner finds no row.
"""

import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import Integer, Row, and_, bindparam, func, or_, select, update

from app.evaluation.model import Options
from app.findings.model import Usage
from app.pipeline.values import Claim, Lease
from app.storage.clock import Now, SecondsSince, later
from app.storage.evaluation_rows import USAGE_COUNTERS, target_of_json, usage_counters
from app.storage.reading import DatabaseReader
from app.storage.schema import (
    IN_PROGRESS,
    QUEUED,
    conversation_bodies,
    conversations,
    evaluation_requests,
    evaluations,
    verdicts,
)
from app.storage.verdict_rows import subject_of_row

_row = conversations.c
_queued = _row.status == QUEUED
_due = and_(_queued, _row.next_run_at <= Now())
_lost = and_(_row.status == IN_PROGRESS, _row.lease_until < Now())
still_ours = and_(_row.id == bindparam("conversation"), _row.lease_token == bindparam("token"))
"""Under this lease; only a conversation in progress has one, as a constraint sees to."""
_unleased = {"lease_token": None, "lease_until": None, "published_at": None}

# Those rung for longest ago have left the window, or nothing would be due again after a queue forgot a whole window.
_RINGING = select(func.count()).where(_queued, _row.published_at >= later("minus_republish"))
_pick_due = (
    select(_row.id)
    .where(_due, or_(_row.published_at.is_(None), _row.published_at < later("minus_republish")))
    .order_by(_row.idx, _row.id)
    .limit(bindparam("free", type_=Integer))
    .with_for_update(skip_locked=True, key_share=True)
    .cte("picked")
)
_PUBLISH = (
    update(conversations)
    .where(_row.id.in_(select(_pick_due.c.id)))
    .values(published_at=Now())
    .returning(_row.idx, _row.id)
)
_pick_rung = (  # locked rows are being claimed or canceled
    select(_row.id)
    .where(_queued, _row.id.in_(bindparam("ids", expanding=True)))
    .with_for_update(skip_locked=True, key_share=True)
    .cte("picked")
)
_UNPUBLISH = update(conversations).where(_row.id.in_(select(_pick_rung.c.id))).values(published_at=None)

_WORK = (
    select(
        *_row["id", "evaluation_id", "workspace_id", "idx", "status", "attempt", "format"],
        conversation_bodies.c.body,
        *evaluation_requests.c["judges", "options", "target"],
        (evaluations.c.prompt_tokens + evaluations.c.completion_tokens).label("tokens_spent"),
        evaluations.c.cost_usd,
        SecondsSince(evaluations.c.created_at).label("waited_seconds"),
    )
    .join_from(conversations, conversation_bodies, conversation_bodies.c.conversation_id == _row.id)
    .join(evaluations, evaluations.c.id == _row.evaluation_id)
    .join(evaluation_requests, evaluation_requests.c.evaluation_id == _row.evaluation_id)
)
_TO_CLAIM = _WORK.where(_row.id == bindparam("conversation"), or_(_due, _lost)).with_for_update(
    of=conversations, key_share=True
)
_TAKEN = _WORK.where(_row.id.in_(bindparam("ids", expanding=True))).order_by(_row.evaluation_id, _row.idx)
_LEASE = (
    update(conversations)
    .where(_row.id == bindparam("conversation"))
    .values(
        status="in_progress",
        attempt=_row.attempt + 1,
        lease_token=bindparam("token"),
        lease_until=later("lease_seconds"),
    )
)
_DONE = select(
    *verdicts.c["conversation_id", "dimension", "judge_version", "level", "turn", "event", "call_id", "expectation"]
).where(verdicts.c.conversation_id.in_(bindparam("ids", expanding=True)))
_START = (
    update(evaluations)
    .where(evaluations.c.id == bindparam("evaluation"))
    .values(
        queued=evaluations.c.queued - 1,
        in_progress=evaluations.c.in_progress + 1,
        status="in_progress",
        started_at=func.coalesce(evaluations.c.started_at, Now()),
        revision=evaluations.c.revision + 1,
    )
)
_EXTEND = update(conversations).where(still_ours).values(lease_until=later("lease_seconds"))
_PUT_BACK = (
    update(conversations)
    .where(still_ours)
    .values(
        status="queued",
        attempt=_row.attempt - bindparam("unburn", type_=Integer),
        next_run_at=later("delay_seconds"),
        **_unleased,
    )
    .returning(_row.evaluation_id)
)
_REQUEUED = (
    update(evaluations)
    .where(evaluations.c.id == bindparam("evaluation"))
    .values(
        queued=evaluations.c.queued + bindparam("number", type_=Integer),
        in_progress=evaluations.c.in_progress - bindparam("number", type_=Integer),
        revision=evaluations.c.revision + 1,
    )
)
_PAY = (
    update(evaluations)
    .where(evaluations.c.id == bindparam("evaluation"))
    .values(
        {
            name: evaluations.c[name] + bindparam(f"add_{name}", type_=evaluations.c[name].type)
            for name in USAGE_COUNTERS
        }
    )
)
_LOST = (
    select(*_row["id", "evaluation_id", "attempt"])
    .where(_lost)
    .order_by(_row.lease_until)
    .limit(bindparam("limit", type_=Integer))
    .with_for_update(skip_locked=True, key_share=True)
)
_REQUEUE = (
    update(conversations)
    .where(_row.id.in_(bindparam("ids", expanding=True)))
    .values(status="queued", next_run_at=Now(), **_unleased)
)
_TAKE_OVER = (
    update(conversations)
    .where(_row.id.in_(bindparam("ids", expanding=True)))
    .values(lease_token=bindparam("token"), lease_until=later("lease_seconds"))
)


_OPTIONS = frozenset(field.name for field in fields(Options))
"""A newer release may have stored others; they must not keep this one's dispatcher from its work."""


class Leasing(DatabaseReader):
    """The part of the Transaction port that hands work out and takes it back."""

    async def due(self, *, window: int, republish_after_seconds: float) -> list[str]:
        """Mark queued conversations as published and return their ids, at most what is free of ``window``."""
        since = {"minus_republish": -republish_after_seconds}
        ringing: int = (await self.run(_RINGING, since)).scalar_one()
        if ringing >= window:
            return []
        rows = (await self.run(_PUBLISH, {**since, "free": window - ringing})).all()
        return [row.id for row in sorted(rows, key=tuple)]

    async def unpublish(self, conversation_ids: Sequence[str]) -> None:
        """Take back the mark of ``due`` from conversations still queued: ringing for them failed."""
        await self.run(_UNPUBLISH, {"ids": list(conversation_ids)})

    async def claim(self, conversation_id: str, lease_seconds: float) -> Claim | None:
        """Take a queued and due conversation, or one whose lease ran out; None when there is nothing to take."""
        row = await self.one(_TO_CLAIM, {"conversation": conversation_id})
        if row is None:
            return None
        lease = Lease(conversation_id, secrets.token_hex(16))
        place = {"conversation": conversation_id, "token": lease.token, "lease_seconds": lease_seconds}
        await self.run(_LEASE, place)
        done = await self._done([conversation_id])
        if row.status == "queued":
            await self.run(_START, {"evaluation": row.evaluation_id})
        return _claim(row, lease, row.attempt + 1, done)

    async def extend(self, lease: Lease, lease_seconds: float) -> bool:
        """Prolong a lease; False when it is no longer ours."""
        result = await self.run(_EXTEND, {**of_lease(lease), "lease_seconds": lease_seconds})
        return result.rowcount == 1

    async def put_back(self, lease: Lease, *, delay_seconds: float, burn_attempt: bool, usage: Usage = Usage()) -> bool:
        """Return a conversation to the queue, due after a delay, and count ``usage``; False when fenced out."""
        values = {**of_lease(lease), "delay_seconds": delay_seconds, "unburn": 0 if burn_attempt else 1}
        row = await self.one(_PUT_BACK, values)
        if row is None:
            return False
        await self.run(_REQUEUED, {"evaluation": row.evaluation_id, "number": 1})
        if usage.requests:
            paid = {f"add_{name}": value for name, value in usage_counters(usage).items()}
            await self.run(_PAY, {"evaluation": row.evaluation_id, **paid})
        return True

    async def expired(self, *, max_attempts: int, lease_seconds: float, limit: int = 50) -> list[Claim]:
        """Put back conversations whose lease ran out; take over and return those without attempts left."""
        rows = (await self.run(_LOST, {"limit": limit})).all()
        again = [row for row in rows if row.attempt < max_attempts]
        over = [row.id for row in rows if row.attempt >= max_attempts]
        if again:
            await self.run(_REQUEUE, {"ids": [row.id for row in again]})
            numbers = sorted(Counter(row.evaluation_id for row in again).items())  # locks by ascending id
            await self.run(_REQUEUED, [{"evaluation": name, "number": number} for name, number in numbers])
        if not over:
            return []
        token = secrets.token_hex(16)
        await self.run(_TAKE_OVER, {"ids": over, "token": token, "lease_seconds": lease_seconds})
        taken = (await self.run(_TAKEN, {"ids": over})).all()
        done = await self._done(over)
        return [_claim(row, Lease(row.id, token), row.attempt, done) for row in taken]

    async def _done(self, ids: Sequence[str]) -> Mapping[str, frozenset[tuple[str, str, str]]]:
        found: dict[str, set[tuple[str, str, str]]] = {one: set() for one in ids}
        for row in await self.run(_DONE, {"ids": ids}):
            found[row.conversation_id].add((row.dimension, subject_of_row(row).key, row.judge_version))
        return {one: frozenset(keys) for one, keys in found.items()}


def of_lease(lease: Lease) -> dict[str, str]:
    """Return the parameters of ``still_ours``."""
    return {"conversation": lease.conversation_id, "token": lease.token}


def _claim(row: Row[Any], lease: Lease, attempt: int, done: Mapping[str, frozenset[tuple[str, str, str]]]) -> Claim:
    return Claim(
        lease=lease,
        evaluation_id=row.evaluation_id,
        workspace_id=row.workspace_id,
        index=row.idx,
        attempt=attempt,
        format=row.format,
        body=row.body,
        judges=tuple(row.judges),
        options=Options(**{name: value for name, value in row.options.items() if name in _OPTIONS}),
        target=target_of_json(row.target),
        tokens_spent=row.tokens_spent,
        cost_spent_usd=row.cost_usd,
        done=done[row.id],
        waited_seconds=row.waited_seconds,
    )
