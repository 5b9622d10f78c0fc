"""Cancel and delete: what a client may still change about an evaluation."""

from app.evaluation.model import Evaluation
from app.pipeline.errors import FinishedError, NotFoundError
from app.pipeline.finish import WEBHOOK_PREFIX
from app.pipeline.ports import Store


async def cancel(store: Store, workspace_id: str, evaluation_id: str) -> Evaluation:
    """Stop an evaluation and return it; canceling twice is canceling once.

    Raises:
        NotFoundError: no such evaluation here.
        FinishedError: it ended before.
    """
    async with store.begin() as tx:
        found = await tx.cancel(workspace_id, evaluation_id)
        if found in {"completed", "failed"}:
            raise FinishedError
        if found in {"queued", "in_progress"}:
            await tx.add_delivery(evaluation_id, WEBHOOK_PREFIX + "canceled")
        evaluation = await tx.evaluation(workspace_id, evaluation_id)
    if evaluation is None:
        raise NotFoundError
    return evaluation


async def delete(store: Store, workspace_id: str, evaluation_id: str) -> None:
    """Delete an evaluation with its conversations, verdicts, findings and deliveries.

    Raises:
        NotFoundError: no such evaluation here.
    """
    async with store.begin() as tx:
        if not await tx.delete(workspace_id, evaluation_id):
            raise NotFoundError
