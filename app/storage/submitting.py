"""Writes of the API: keys, evaluations and the conversations that are their work items."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from sqlalchemy import and_, bindparam, select, update
from sqlalchemy.dialects.postgresql import insert

from app.evaluation.model import NewConversation
from app.ids import new_id
from app.pipeline.values import NewEvaluation
from app.storage.clock import Now
from app.storage.evaluation_rows import conversation_row, evaluation_warnings_json, options_json, target_json
from app.storage.reading import DatabaseReader, hash_of_key
from app.storage.schema import (
    api_keys,
    conversation_bodies,
    conversations,
    evaluation_requests,
    evaluations,
    idempotency_keys,
    workspaces,
)

# PostgreSQL's insert compiles on SQLite too, whose ON CONFLICT was made after it.
_NEW_WORKSPACE = insert(workspaces).on_conflict_do_nothing(index_elements=["id"])
_NEW_KEY = insert(api_keys).on_conflict_do_nothing(index_elements=["key_sha256"])
_named = and_(api_keys.c.workspace_id == bindparam("workspace"), api_keys.c.name == bindparam("key_name"))
_REVOKE_OTHERS = (
    update(api_keys)
    .where(_named, api_keys.c.key_sha256 != bindparam("sha256"), api_keys.c.revoked_at.is_(None))
    .values(revoked_at=Now())
)
_REVIVE = (
    update(api_keys)
    .where(_named, api_keys.c.key_sha256 == bindparam("sha256"), api_keys.c.revoked_at.is_not(None))
    .values(revoked_at=None)
)
_REMEMBER = insert(idempotency_keys).on_conflict_do_nothing(index_elements=["workspace_id", "key_sha256"])
_OURS = select(evaluations.c.id).where(
    evaluations.c.id == bindparam("evaluation"), evaluations.c.workspace_id == bindparam("workspace")
)


class Submitting(DatabaseReader):
    """The part of the Transaction port that takes work in."""

    async def ensure_key(self, key_sha256: str, *, name: str, workspace_id: str, scopes: Collection[str]) -> None:
        """Make this the one live key of its name; makes the workspace if need be."""
        await self.run(_NEW_WORKSPACE, {"id": workspace_id})
        key = {"id": new_id("key"), "workspace_id": workspace_id, "name": name, "key_sha256": key_sha256}
        await self.run(_NEW_KEY, {**key, "scopes": sorted(scopes)})
        named = {"workspace": workspace_id, "key_name": name, "sha256": key_sha256}
        await self.run(_REVOKE_OTHERS, named)
        await self.run(_REVIVE, named)

    async def remember(self, workspace_id: str, key: str, body_sha256: str, evaluation_id: str) -> tuple[str, str]:
        """Bind an Idempotency-Key; return the (body sha256, evaluation id) that now stands there."""
        row = {"workspace_id": workspace_id, "key_sha256": hash_of_key(key)}
        # Waits for another transaction that has inserted the same key and not ended yet.
        await self.run(_REMEMBER, {**row, "body_sha256": body_sha256, "evaluation_id": evaluation_id})
        return await self.idempotent(workspace_id, key) or (body_sha256, evaluation_id)

    async def add_evaluation(self, new: NewEvaluation) -> None:
        """Insert an evaluation in state queued, all of its ``total`` conversations queued and remaining."""
        request, webhook = new.request, new.request.webhook
        secret = None if new.webhook_secret is None else self._seal.close(new.webhook_secret)
        await self.run(
            evaluations.insert(),
            {
                "id": new.id,
                "workspace_id": new.workspace_id,
                "name": request.name,
                "total": new.total,
                "remaining": new.total,
                "queued": new.total,
                "by_dimension": {},
                "webhook_url": None if webhook is None else webhook.url,
                "webhook_secret": secret,
            },
        )
        await self.run(
            evaluation_requests.insert(),
            {
                "evaluation_id": new.id,
                "judges": request.judges,
                "options": options_json(request.options),
                "metadata": None if request.metadata is None else dict(request.metadata),
                "warnings": evaluation_warnings_json(new.warnings),
                "target": target_json(request.target),
            },
        )

    async def add_conversations(self, workspace_id: str, evaluation_id: str, batch: Sequence[NewConversation]) -> None:
        """Insert conversations, each a work item due now.

        Raises:
            ValueError: the workspace has no such evaluation.
        """
        if await self.one(_OURS, {"workspace": workspace_id, "evaluation": evaluation_id}) is None:
            raise ValueError(f"{workspace_id} has no {evaluation_id}")
        ids: list[str] = []

        def rows() -> Iterator[dict[str, Any]]:
            for new in batch:
                row = conversation_row(workspace_id, evaluation_id, new)
                ids.append(row["id"])
                yield row

        await self.insert_many(conversations, rows())
        bodies = ({"conversation_id": name, "body": new.body} for name, new in zip(ids, batch, strict=True))
        await self.insert_many(conversation_bodies, bodies)
