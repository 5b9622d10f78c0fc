"""Submit: all of a request or none of it, and a 202 that does not depend on the queue."""

import base64
import secrets
from dataclasses import dataclass, field

from app.evaluation.model import Evaluation
from app.ids import new_id
from app.pipeline.errors import IdempotencyMismatchError
from app.pipeline.ports import Intake, Queue, Store
from app.pipeline.recover import publish
from app.pipeline.values import Admitted, Body, NewEvaluation, Rules


@dataclass(frozen=True, slots=True)
class Submitted:
    """What was stored, or found to be stored already."""

    evaluation: Evaluation
    replayed: bool = False
    webhook_secret: str | None = field(default=None, repr=False)
    """Only when it was made here; it is never shown again."""


class _KeyTakenError(Exception):
    """Another request with the same Idempotency-Key won while this one was being stored."""


async def submit(
    body: Body,
    *,
    workspace_id: str,
    idempotency_key: str | None,
    store: Store,
    queue: Queue,
    intake: Intake,
    rules: Rules,
) -> Submitted:
    """Validate a body, store its evaluation and conversations in one transaction, then ring for a worker.

    Raises:
        RefusedError: the body breaks a rule; nothing was stored.
        IdempotencyMismatchError: the key was used with another body.
        BusyError: too many bytes in flight.
        StoreUnavailableError: nothing was stored.
    """
    replay = await _replay(store, workspace_id, idempotency_key, body.sha256)
    if replay is not None:
        return replay
    async with intake.admit(body, rules) as admitted:
        made, secret = _webhook_secret(admitted)
        new = NewEvaluation(
            new_id("feval"), workspace_id, admitted.request, admitted.total, admitted.warnings, made or secret
        )
        try:
            evaluation = await _keep(store, new, admitted, idempotency_key, body.sha256)
        except _KeyTakenError:
            winner = await _replay(store, workspace_id, idempotency_key, body.sha256)
            if winner is None:  # the winner was deleted in between: the client may simply ask again
                raise IdempotencyMismatchError from None
            return winner
    await publish(store, queue)
    return Submitted(evaluation, webhook_secret=made)


async def _keep(store: Store, new: NewEvaluation, admitted: Admitted, key: str | None, body_sha256: str) -> Evaluation:
    async with store.begin() as tx:
        await tx.add_evaluation(new)
        if key is not None:
            _, bound = await tx.remember(new.workspace_id, key, body_sha256, new.id)
            if bound != new.id:
                raise _KeyTakenError
        async for batch in admitted.batches:
            await tx.add_conversations(new.workspace_id, new.id, batch)
        evaluation = await tx.evaluation(new.workspace_id, new.id)
    if evaluation is None:
        raise RuntimeError(f"{new.id} was not stored")
    return evaluation


async def _replay(store: Store, workspace_id: str, key: str | None, body_sha256: str) -> Submitted | None:
    if key is None:
        return None
    async with store.read() as reader:
        known = await reader.idempotent(workspace_id, key)
        if known is None:
            return None
        stored_sha256, evaluation_id = known
        if stored_sha256 != body_sha256:
            raise IdempotencyMismatchError
        evaluation = await reader.evaluation(workspace_id, evaluation_id)
    return None if evaluation is None else Submitted(evaluation, replayed=True)


def _webhook_secret(admitted: Admitted) -> tuple[str | None, str | None]:
    """Return (secret made here, secret of the client), at most one of them."""
    webhook = admitted.request.webhook
    if webhook is None:
        return None, None
    if webhook.secret is not None:
        return None, webhook.secret
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode(), None
