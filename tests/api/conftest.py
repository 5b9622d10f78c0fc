"""The API on a real SQLite database, with an intake that trusts what it is given."""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from app.api.application import create_api
from app.api.collaborators import Collaborators, Limits
from app.findings.model import not_applicable
from app.judges.contract import Judge
from app.pipeline.access import key_sha256
from app.pipeline.values import Rules
from app.storage.store import DatabaseStore
from tests.api.contract import conforms
from tests.api.stand_ins import KEY, KeyStore, QuietQueue, RefusingIntake, TrustingIntake

PATH = "/v1/forensic-evaluations"
RULES = Rules({"soundness": True, "manners": False})


async def _undecided(*_: Any) -> Any:
    return not_applicable("no_calls", "")


JUDGES = (
    Judge(
        "soundness",
        "tool",
        "1",
        "Is the record sound?",
        "conversation",
        "deterministic",
        lambda case: [],
        _undecided,
        {"orphan_output": "info", "duplicate_call_id": "low"},
        reasons={"no_calls": "There is no call."},
    ),
)


def an_api(store: Any = None, intake: Any = None, queue: Any = None, rules: Rules = RULES, **more: Any) -> FastAPI:
    """Return an application on stand-ins for whatever is not given."""
    some_store: Any = store or KeyStore()
    collaborators = Collaborators(some_store, queue or QuietQueue(), intake or RefusingIntake(), rules, JUDGES, **more)

    @contextlib.asynccontextmanager
    async def opened() -> AsyncIterator[Collaborators]:
        yield collaborators

    return create_api(opened)


@contextlib.asynccontextmanager
async def client_of(app: FastAPI, key: str | None = KEY) -> AsyncIterator[httpx2.AsyncClient]:
    """Run an application and yield a client that holds every answer against the OpenAPI document."""
    headers = {"authorization": f"Bearer {key}"} if key else {}
    transport = httpx2.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(
            transport=transport, base_url="http://api", headers=headers, event_hooks={"response": [conforms]}
        ) as client,
    ):
        yield client


@contextlib.asynccontextmanager
async def opened_store(path: Path) -> AsyncIterator[DatabaseStore]:
    """Open a database file."""
    store = DatabaseStore(f"sqlite+aiosqlite:///{path}", "a secret of sixteen characters or more")
    try:
        yield store
    finally:
        await store.aclose()


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with one key of every scope, to be copied: migrating takes longer than most tests."""
    path = tmp_path_factory.mktemp("migrated") / "api.sqlite3"

    async def migrate() -> None:
        async with opened_store(path) as store:
            await store.migrate()
            async with store.begin() as tx:
                await tx.ensure_key(key_sha256(KEY), name="test", workspace_id="ws_default", scopes=("admin",))

    asyncio.run(migrate())
    return path


@pytest.fixture
async def store(migrated: Path, tmp_path: Path) -> AsyncIterator[DatabaseStore]:
    """A database with one key of every scope."""
    async with opened_store(copied(migrated, tmp_path)) as store:
        yield store


def copied(database: Path, directory: Path) -> Path:
    """Copy a closed database."""
    return Path(shutil.copy(database, directory))


@pytest.fixture
def queue() -> QuietQueue:
    """The queue of the application."""
    return QuietQueue()


@pytest.fixture
def app(store: DatabaseStore, queue: QuietQueue) -> FastAPI:
    """The application on a real database."""
    return an_api(store, TrustingIntake(), queue, limits=Limits(heartbeat_seconds=0.05))


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    """A client with every scope in the default workspace."""
    async with client_of(app) as client:
        yield client


def talk(reply: str = "It is on its way.", **more: Any) -> dict[str, Any]:
    """Return a conversation."""
    return {
        "messages": [{"role": "user", "content": "Where is my bike?"}, {"role": "assistant", "content": reply}],
        **more,
    }


async def submitted(client: httpx2.AsyncClient, *conversations: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Submit conversations and return the evaluation."""
    answer = await client.post(PATH, json={"conversations": list(conversations) or [talk()], **more})
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    return found
