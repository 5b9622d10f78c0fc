"""The schema, brought up to date by the program itself: no configuration file, and safe for many at once.

The revisions lie in ``migrations/``, which stands beside the ``app`` package: in a checkout, in the container image,
wherever both were copied together.
"""

from collections.abc import Callable
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection, text

import app
from app.pipeline.errors import StoreUnavailableError
from app.storage.engine import for_writing, open_engine
from app.storage.trouble import translated

_ONE_AT_A_TIME = (
    "SET LOCAL lock_timeout = '60s'",
    "SELECT pg_advisory_xact_lock(7380105386)",
    # From here on every statement of the service waits for us: rather give up than let them queue behind a lock.
    "SET LOCAL lock_timeout = '5s'",
)


async def migrate(url: str | URL) -> None:
    """Bring a database's schema up to date; several processes may do so at once.

    Raises:
        StoreUnavailableError: no connection, or another process holds the schema for too long.
    """
    await change(url, lambda config: command.upgrade(config, "head"))


async def change(url: str | URL, act: Callable[[Config], None]) -> None:
    """Run Alembic commands in one transaction that no other process's can overlap."""
    engine = open_engine(url, 1, patient=True)
    try:
        with translated():
            async with for_writing(engine).begin() as connection:  # SQLite: BEGIN IMMEDIATE is the lock
                if engine.dialect.name == "postgresql":
                    for statement in _ONE_AT_A_TIME:
                        await connection.execute(text(statement))
                await connection.run_sync(lambda sync: act(_config(sync)))
    finally:
        await engine.dispose()


def require_current(connection: Connection) -> None:
    """Return when the schema is the one this program was written for.

    Raises:
        StoreUnavailableError: it is older or newer.
    """
    wanted = ScriptDirectory.from_config(_config(connection)).get_current_head()
    there = MigrationContext.configure(connection).get_current_revision()
    if there != wanted:
        raise StoreUnavailableError(f"the schema is at {there}, this program needs {wanted}: run `forensic migrate`")


def _config(connection: Connection) -> Config:
    directory = Path(app.__file__).parent.parent / "migrations"
    if not (directory / "env.py").is_file():
        raise FileNotFoundError(f"the migrations are not at {directory}, beside the app package")
    config = Config()
    config.set_main_option("script_location", str(directory).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
