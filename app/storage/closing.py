"""How conversations and evaluations end: finished, closed, canceled or deleted.

Every step that could race ends on the evaluation's row: ``remaining = remaining - 1 RETURNING`` lets exactly one of
all transactions see zero.
"""

from typing import Any, Literal

from sqlalchemy import Integer, Row, bindparam, delete, select, update
from sqlalchemy.dialects.postgresql import insert

from app.evaluation.model import FINAL, Status
from app.findings.rollup import Result, Tally
from app.ids import new_id
from app.pipeline.values import Closing, Lease
from app.storage.clock import Now
from app.storage.columns import Json
from app.storage.evaluation_rows import COUNTERS, counters, dimensions, dimensions_json, tally_of_row
from app.storage.judging import Judging
from app.storage.leasing import of_lease, still_ours
from app.storage.schema import conversations, deliveries, evaluation_requests, evaluations

_this = evaluations.c.id == bindparam("evaluation")
_open = evaluations.c.status.not_in(sorted(FINAL))
_added: dict[str, Any] = {
    **{name: evaluations.c[name] + bindparam(f"add_{name}", type_=evaluations.c[name].type) for name in COUNTERS},
    "by_dimension": bindparam("merged", type_=Json()),
    "revision": evaluations.c.revision + 1,
}
_END = (
    update(conversations)
    .where(still_ours)
    .values(status=bindparam("ended"), result=bindparam("outcome"), lease_token=None, lease_until=None)
    .returning(conversations.c.evaluation_id)
)
_LOCK = select(*evaluations.c["status", "by_dimension"]).where(_this).with_for_update(key_share=True)
_is_failed = bindparam("is_failed", type_=Integer)
_ADD_TALLY = (
    update(evaluations)
    .where(_this)
    .values(
        remaining=evaluations.c.remaining - 1,
        in_progress=evaluations.c.in_progress - 1,
        completed=evaluations.c.completed + 1 - _is_failed,
        failed=evaluations.c.failed + _is_failed,
        **_added,
    )
    .returning(evaluations)
)
_CLOSE = (
    update(evaluations)
    .where(_this, _open)
    .values(
        status=bindparam("final"),
        result=bindparam("outcome"),
        result_reason=bindparam("reason"),
        finished_at=Now(),
        revision=evaluations.c.revision + 1,
    )
)
_DELIVERY = ("id", "evaluation_id", "event_type", "webhook_id")
_ADD_DELIVERY = (
    insert(deliveries)
    .from_select(
        _DELIVERY,
        select(
            bindparam("delivery", type_=deliveries.c.id.type),
            evaluations.c.id,
            bindparam("type", type_=deliveries.c.event_type.type),
            bindparam("message", type_=deliveries.c.webhook_id.type),
        ).where(_this, evaluations.c.webhook_url.is_not(None)),
    )
    .on_conflict_do_nothing(index_elements=["evaluation_id", "event_type"])
)
# Cancel and delete touch all rows of an evaluation; this first lock keeps two of them from meeting halfway.
_ALONE = (
    select(evaluation_requests.c.evaluation_id)
    .join_from(evaluation_requests, evaluations)
    .where(_this, evaluations.c.workspace_id == bindparam("workspace"))
    .with_for_update(of=evaluation_requests)
)
_of_evaluation = conversations.c.evaluation_id == bindparam("evaluation")
_CANCEL_CONVERSATIONS = (
    update(conversations)
    .where(_of_evaluation, conversations.c.status.in_(["queued", "in_progress"]))
    .values(status="canceled", lease_token=None, lease_until=None)
)
_CANCEL = (
    update(evaluations)
    .where(_this)
    .values(
        status="canceled",
        canceled=evaluations.c.canceled + evaluations.c.remaining,
        remaining=0,
        queued=0,
        in_progress=0,
        finished_at=Now(),
        **_added,
    )
)
_DELETE_CONVERSATIONS = delete(conversations).where(_of_evaluation)
_DELETE = delete(evaluations).where(_this)


class Ending(Judging):
    """The part of the Transaction port that ends things."""

    async def finish_conversation(
        self, lease: Lease, status: Literal["completed", "failed"], result: Result | None, tally: Tally
    ) -> Closing | None:
        """End a conversation and add its tally to the evaluation's; None when fenced out."""
        ended = await self.one(_END, {**of_lease(lease), "ended": status, "outcome": result})
        if ended is None:
            return None
        place = {"evaluation": ended.evaluation_id}
        before = (await self.run(_LOCK, place)).one()
        values = {**place, **_increments(before, tally), "is_failed": int(status == "failed")}
        row = (await self.run(_ADD_TALLY, values)).one()
        return Closing(row.id, row.remaining, row.total, row.failed, tally_of_row(row), row.webhook_url is not None)

    async def close_evaluation(
        self, evaluation_id: str, status: Status, result: Result | None, reason: str | None
    ) -> None:
        """Set the final state, unless there is one."""
        await self.run(_CLOSE, {"evaluation": evaluation_id, "final": status, "outcome": result, "reason": reason})

    async def add_delivery(self, evaluation_id: str, event_type: str) -> None:
        """Write the webhook delivery row (once per evaluation and type), if the evaluation has a webhook."""
        names = {"delivery": new_id("delivery"), "message": new_id("msg")}
        await self.run(_ADD_DELIVERY, {"evaluation": evaluation_id, "type": event_type, **names})

    async def cancel(self, workspace_id: str, evaluation_id: str) -> Status | None:
        """Cancel whatever has not ended, and return the status found before (None: no such evaluation)."""
        place = {"evaluation": evaluation_id}
        if await self.one(_ALONE, {**place, "workspace": workspace_id}) is None:
            return None
        await self.run(_CANCEL_CONVERSATIONS, place)
        before = (await self.run(_LOCK, place)).one()
        status: Status = before.status
        if status not in FINAL:
            spent = await self.tally_of_canceled(evaluation_id)
            await self.run(_CANCEL, {**place, **_increments(before, spent)})
        return status

    async def delete(self, workspace_id: str, evaluation_id: str) -> bool:
        """Delete an evaluation and everything derived from it; False when there is none."""
        place = {"evaluation": evaluation_id}
        if await self.one(_ALONE, {**place, "workspace": workspace_id}) is None:
            return False
        await self.run(_DELETE_CONVERSATIONS, place)
        await self.run(_DELETE, place)
        return True


def _increments(before: Row[Any], tally: Tally) -> dict[str, Any]:
    """Return the parameters that add a tally to an evaluation whose row is locked."""
    merged = (Tally(by_dimension=dimensions(before.by_dimension)) + tally).by_dimension
    return {
        **{f"add_{name}": value for name, value in counters(tally).items()},
        "merged": dimensions_json(merged),
    }
