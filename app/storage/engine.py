"""Connections: how each database is opened, and how transactions begin on it.

Two engines share one pool. The writing one is READ COMMITTED on PostgreSQL and ``BEGIN IMMEDIATE`` on SQLite (a
transaction that first reads and then writes would fail at once with "database is locked", whatever the timeout). The
reading one sees one snapshot.
"""

import logging
import time
from typing import Any

from sqlalchemy import URL, Connection, event, make_url
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

BUSY_SECONDS = 15
"""How long a statement waits for another's lock before the store counts as unavailable."""
_PING_AFTER_SECONDS = 1.0
_DRIVERS = {"postgres": "postgresql+asyncpg", "postgresql": "postgresql+asyncpg", "sqlite": "sqlite+aiosqlite"}


def parse_url(url: str | URL) -> URL:
    """Return the URL with its asynchronous driver, and libpq's ``sslmode`` as that driver calls it.

    Raises:
        ValueError: neither PostgreSQL nor a SQLite file.
    """
    parsed = make_url(url)
    backend = parsed.get_backend_name() if "+" in parsed.drivername else parsed.drivername
    if backend not in _DRIVERS:
        raise ValueError(f"no database of the kind {backend!r}: use postgresql or sqlite")
    parsed = parsed.set(drivername=_DRIVERS[backend])
    if backend == "sqlite":
        if parsed.database in {None, "", ":memory:"}:
            raise ValueError("SQLite needs a file, since every connection to memory is a database of its own")
        return parsed
    mode = parsed.query.get("sslmode")
    return parsed if mode is None else parsed.difference_update_query(["sslmode"]).update_query_dict({"ssl": mode})


def open_engine(url: str | URL, pool_size: int, *, patient: bool = False) -> AsyncEngine:
    """Return an engine; nothing connects yet. Parameters never show in errors or logs.

    A patient one lets statements of PostgreSQL take any time.
    """
    parsed = parse_url(url)
    options: dict[str, Any] = {
        "pool_size": pool_size,
        "max_overflow": 0,
        "pool_timeout": BUSY_SECONDS,
        "hide_parameters": True,
    }
    if parsed.get_backend_name() == "sqlite":
        logging.getLogger("aiosqlite").setLevel(logging.INFO)  # below, it logs the parameters of every statement
        engine = create_async_engine(parsed, connect_args={"timeout": BUSY_SECONDS}, **options)
        event.listen(engine.sync_engine, "connect", _open_sqlite)
        event.listen(engine.sync_engine, "begin", _begin_sqlite)
        return engine
    engine = create_async_engine(
        parsed,
        isolation_level="READ COMMITTED",
        connect_args={
            "timeout": 5,
            "command_timeout": None if patient else 2 * BUSY_SECONDS,
            "server_settings": {
                "application_name": "forensic-evals",
                "lock_timeout": f"{BUSY_SECONDS}s",
                "statement_timeout": "0" if patient else f"{2 * BUSY_SECONDS}s",
                # A process stopped in the middle holds row locks: shorter than others wait for them.
                "idle_in_transaction_session_timeout": f"{BUSY_SECONDS * 2 // 3}s",
                "jit": "off",  # its planning costs more than any of our statements
            },
        },
        **options,
    )
    event.listen(engine.sync_engine, "checkin", _note_return)
    event.listen(engine.sync_engine, "checkout", _check_connection)
    return engine


def for_writing(engine: AsyncEngine) -> AsyncEngine:
    """Return the engine on which transactions may write."""
    return engine.execution_options(begin="BEGIN IMMEDIATE") if engine.dialect.name == "sqlite" else engine


def for_reading(engine: AsyncEngine) -> AsyncEngine:
    """Return the engine on which each transaction sees one snapshot."""
    if engine.dialect.name == "sqlite":
        return engine
    return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def _open_sqlite(connection: Any, entry: ConnectionPoolEntry) -> None:
    connection.isolation_level = None  # the driver's own BEGIN comes too late; ours is below
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("begin", "BEGIN"))


def _note_return(connection: Any, entry: ConnectionPoolEntry) -> None:
    entry.info["returned"] = time.monotonic()


def _check_connection(connection: Any, entry: ConnectionPoolEntry, proxy: Any) -> None:
    """Do what ``pool_pre_ping`` does, which costs three round trips each time, only after a pause.

    A connection that the server closed is known to be closed without asking.
    """
    if connection.driver_connection.is_closed():
        raise DisconnectionError
    try:
        returned = entry.info.get("returned")  # absent on a connection just made
        if returned is not None and time.monotonic() - returned > _PING_AFTER_SECONDS:
            connection.ping()
    except Exception as error:
        raise DisconnectionError from error
