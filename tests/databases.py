"""Real databases for tests: a file of SQLite, and PostgreSQL wherever a server can be reached.

``database_url`` gives each test an empty, migrated database, once of each kind; import the fixtures in a conftest.
PostgreSQL is looked for at FORENSIC_TEST_POSTGRES_URL, else on loopback; a database of a random name is made for the
run and dropped after it.
"""

import asyncio
import contextlib
import functools
import getpass
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest
from sqlalchemy import make_url

from app.storage.migrating import migrate

_DSN = os.environ.get("FORENSIC_TEST_POSTGRES_URL", "postgresql+asyncpg://root@127.0.0.1:5432/postgres")


def servers() -> list[str]:
    """Return where a PostgreSQL may be, most likely first."""
    if "FORENSIC_TEST_POSTGRES_URL" in os.environ:
        return [_DSN]
    names = dict.fromkeys(("root", "postgres", getpass.getuser()))
    return [make_url(_DSN).set(username=name).render_as_string(hide_password=False) for name in names]


def plain(url: str) -> str:
    """Return a URL as asyncpg itself wants it."""
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


async def execute(url: str, *statements: str) -> None:
    """Run statements on a PostgreSQL, each on its own."""
    connection = await asyncpg.connect(plain(url), timeout=3)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


@functools.cache
def reachable_server() -> str | None:
    """Return the URL of a PostgreSQL that lets us in, if there is one."""
    for url in servers():
        with contextlib.suppress(OSError, asyncpg.PostgresError):
            asyncio.run(execute(url, "SELECT 1"))
            return url
    return None


@contextlib.contextmanager
def throwaway_postgres() -> Iterator[str]:
    """Lend an empty database and drop it afterwards; skips where no server can be reached."""
    server = reachable_server()
    if server is None:
        pytest.skip("no PostgreSQL at " + ", ".join(make_url(url).render_as_string() for url in servers()))
    name = f"forensic_test_{secrets.token_hex(6)}"
    asyncio.run(execute(server, f"CREATE DATABASE {name}"))
    try:
        yield make_url(server).set(database=name).render_as_string(hide_password=False)
    finally:
        asyncio.run(execute(server, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"))


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a migrated SQLite file to copy."""
    path = tmp_path_factory.mktemp("sqlite") / "template.db"
    asyncio.run(migrate(f"sqlite+aiosqlite:///{path}"))
    return path


@pytest.fixture
def sqlite(sqlite_template: Path, tmp_path: Path) -> str:
    """Return the URL of an empty SQLite database."""
    return f"sqlite+aiosqlite:///{shutil.copy(sqlite_template, tmp_path / 'forensic.db')}"


@pytest.fixture(scope="session")
def postgres_migrated() -> Iterator[str]:
    """Return the URL of a migrated PostgreSQL database that lives as long as the run."""
    with throwaway_postgres() as url:
        asyncio.run(migrate(url))
        yield url


@pytest.fixture
def postgres(postgres_migrated: str) -> str:
    """Return the URL of an empty PostgreSQL database."""
    asyncio.run(execute(postgres_migrated, "DELETE FROM workspaces"))  # and with it everything; TRUNCATE is slower
    return postgres_migrated


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest) -> str:
    """Return the URL of an empty database, of one kind after the other."""
    url: str = request.getfixturevalue(request.param)
    return url
