"""Every test here runs against both databases, unless it says otherwise."""

from collections.abc import AsyncIterator

import pytest

from app.storage.store import DatabaseStore
from tests.databases import (  # noqa: F401 - fixtures
    database_url,
    postgres,
    postgres_migrated,
    sqlite,
    sqlite_template,
)
from tests.storage.making import SECRET_KEY, WORKSPACE


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[DatabaseStore]:  # noqa: F811 - the fixture above
    """Return a store with one workspace in it."""
    store = DatabaseStore(database_url, SECRET_KEY, pool_size=25)
    async with store.begin() as tx:
        await tx.ensure_key("0" * 64, name="test", workspace_id=WORKSPACE, scopes=["write"])
    yield store
    await store.aclose()
