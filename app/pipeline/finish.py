"""Finish: a conversation ends once, and the last one closes its evaluation in the same transaction."""

from typing import Literal

from app.evaluation.model import Status
from app.findings.model import Subject, Verdict, errored
from app.findings.rollup import Result, roll_up
from app.judges.catalogue import BY_NAME
from app.pipeline.ports import Store, Transaction
from app.pipeline.values import Claim, Closing, Lease

WEBHOOK_PREFIX = "forensic_evaluation."
_GIVEN_UP = {
    "worker_lost": "The worker was lost {attempts} times while it judged this conversation.",
    "internal_error": "Judging this conversation failed {attempts} times; the server's log says how.",
    "timeout": "Judging this conversation took too long {attempts} times without getting anywhere.",
}


async def finish(store: Store, lease: Lease, status: Literal["completed", "failed"] = "completed") -> bool:
    """End a conversation with what its stored verdicts say; False when another has taken it over or it is gone."""
    async with store.begin() as tx:
        tally = await tx.conversation_tally(lease)
        if tally is None:
            return False
        result, _ = roll_up(tally)
        closing = await tx.finish_conversation(lease, status, result, tally)
        if closing is None:
            return False
        if closing.remaining == 0:
            await _close(tx, closing)
    return True


async def _close(tx: Transaction, closing: Closing) -> None:
    status, result, reason = final_state(closing)
    await tx.close_evaluation(closing.evaluation_id, status, result, reason)
    if closing.has_webhook:
        await tx.add_delivery(closing.evaluation_id, WEBHOOK_PREFIX + status)


def final_state(closing: Closing) -> tuple[Status, Result | None, str | None]:
    """Return status, result and the result's reason: failed only when every conversation is."""
    status: Status = "failed" if closing.failed == closing.total else "completed"
    result, reason = roll_up(closing.tally)
    return status, result, reason


async def give_up(store: Store, claim: Claim, reason_code: str = "worker_lost") -> bool:
    """End a conversation that is out of attempts: what was not judged is stored as an error.

    Which subjects a judge has is not known here (reading the transcript may be what kills the worker), so a judge of
    calls or turns gets an error about the conversation even where some of its subjects were decided: others may not
    have been, and a result must not look better than what was examined.
    """
    whole = Subject()
    trouble = errored(reason_code, _GIVEN_UP[reason_code].format(attempts=claim.attempt))
    missing = [
        Verdict(judge.name, judge.family, judge.version, whole, judge.scale, judge.threshold, trouble)
        for judge in (BY_NAME[name] for name in claim.judges if name in BY_NAME)
        if (judge.name, whole.key, judge.version) not in claim.done
        and (judge.family != "tool" or claim.format == "items")
    ]
    async with store.begin() as tx:
        if not await tx.save_verdicts(claim.lease, missing):
            return False
    return await finish(store, claim.lease, "failed")
