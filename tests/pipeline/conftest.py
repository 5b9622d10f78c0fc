"""A real store on SQLite, a schema checker that has nothing to check, and conversations ready to be stored."""

import contextlib
import hashlib
import json
import sqlite3
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import zstandard

from app.evaluation.model import DEFAULT_WORKSPACE, EvaluationRequest, NewConversation, Options, WebhookRequest
from app.ids import new_id
from app.judges.contract import JudgeModel, SchemaCheck
from app.pipeline.access import ensure_bootstrap_key
from app.pipeline.judge import Examiner
from app.pipeline.values import NewEvaluation
from app.storage.store import DatabaseStore

CHAT: dict[str, Any] = {
    "messages": [
        {"role": "user", "content": "Where is my order?"},
        {"role": "assistant", "content": "It is in Bremen and arrives on Friday."},
    ]
}
AGENT: dict[str, Any] = {
    "items": [
        {"type": "message", "role": "user", "content": "Where is order 7?"},
        {"type": "function_call", "call_id": "a", "name": "track", "arguments": '{"order": "7"}'},
        {"type": "function_call_output", "call_id": "a", "output": '{"place": "Bremen"}'},
        {"type": "message", "role": "assistant", "content": "It is in Bremen."},
    ],
    "tools": [{"type": "function", "name": "track", "parameters": {"type": "object"}}],
}
CODE_JUDGES = ("tool_call_integrity", "argument_validity", "tool_redundancy")


class NothingToCheck:
    """Finds every instance valid."""

    async def check(self, jobs: Sequence[tuple[str, str]]) -> list[SchemaCheck]:
        return [SchemaCheck() for _ in jobs]


class Bureau:
    """A store and the few things tests do with it."""

    def __init__(self, store: DatabaseStore, path: Path) -> None:
        self.store = store
        self.path = path

    async def add(
        self,
        conversations: Sequence[dict[str, Any] | bytes],
        judges: tuple[str, ...] = CODE_JUDGES,
        options: Options | None = None,
        webhook: bool = False,
    ) -> str:
        """Store an evaluation as ``submit`` does, and return its id."""
        request = EvaluationRequest(
            judges=judges,
            options=options or Options(),
            webhook=WebhookRequest("https://example.com/hook") if webhook else None,
        )
        new = NewEvaluation(new_id("feval"), DEFAULT_WORKSPACE, request, len(conversations), ())
        async with self.store.begin() as tx:
            await tx.add_evaluation(new)
            await tx.add_conversations(
                DEFAULT_WORKSPACE, new.id, [stored(index, one) for index, one in enumerate(conversations)]
            )
        return new.id

    async def due(self) -> list[str]:
        """Return ids as a dispatcher would get them."""
        async with self.store.begin() as tx:
            return await tx.due(window=1000, republish_after_seconds=0)

    def examiner(self, model: JudgeModel | None = None, **rest: Any) -> Examiner:
        """Return a worker's examiner."""
        return Examiner(self.store, NothingToCheck(), lambda _: model, b"key", **rest)

    async def evaluation(self, evaluation_id: str) -> Any:
        """Return an evaluation."""
        async with self.store.read() as reader:
            return await reader.evaluation(DEFAULT_WORKSPACE, evaluation_id)

    def expire_leases(self) -> None:
        """Let every lease have run out, as if its worker had slept."""
        with contextlib.closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute("UPDATE conversations SET lease_until = '2000-01-01 00:00:00.000000'")

    def deliveries(self) -> list[tuple[str, str]]:
        """Return (evaluation id, type) of every webhook to be delivered."""
        with contextlib.closing(sqlite3.connect(self.path)) as connection:
            return connection.execute("SELECT evaluation_id, event_type FROM deliveries ORDER BY 1, 2").fetchall()


def stored(index: int, conversation: dict[str, Any] | bytes) -> NewConversation:
    """Return a conversation as the door hands it over."""
    raw = conversation if isinstance(conversation, bytes) else json.dumps(conversation).encode()
    digest = hashlib.sha256(raw).hexdigest()
    kind = "items" if b'"items"' in raw else "messages"
    return NewConversation(index, kind, zstandard.compress(raw), len(raw), digest, digest)


@pytest.fixture
async def bureau(tmp_path: Path) -> AsyncIterator[Bureau]:
    path = tmp_path / "forensic.sqlite3"
    store = DatabaseStore(f"sqlite+aiosqlite:///{path}", "a secret of this test, long enough")
    await store.migrate()
    await ensure_bootstrap_key(store, "fk_bootstrap_0123456789")
    yield Bureau(store, path)
    await store.aclose()
