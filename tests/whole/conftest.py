"""Both ways the product is run: embedded (SQLite, a private Redis) and on servers (PostgreSQL, Redis)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.databases import throwaway_postgres
from tests.processes import private_redis
from tests.stack import Stack, running


@pytest.fixture(scope="session", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def stack(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Run API, one worker and Redis for the whole session, without a judge model."""
    directory: Path = tmp_path_factory.mktemp(request.param)
    with private_redis() as redis:
        if request.param == "sqlite":
            with running(directory, database_url=None, redis_url=redis.url) as started:
                yield started
        else:
            with (
                throwaway_postgres() as url,
                running(directory, database_url=url, redis_url=redis.url) as started,
            ):
                yield started
