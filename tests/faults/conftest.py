"""Databases to break things on."""

from collections.abc import Iterator

import pytest

from tests.databases import throwaway_postgres


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """Yield the URL of an empty PostgreSQL database, or None for the embedded one."""
    if request.param == "sqlite":
        yield None
    else:
        with throwaway_postgres() as url:
            yield url
