"""The database away, full, slow or restarted: one error, in bounded time, without a word of a transcript."""

import asyncio
import logging
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sqlalchemy import text

from app.findings.model import Usage, passed
from app.pipeline.errors import StoreUnavailableError
from app.storage import engine
from app.storage import store as store_module
from app.storage.engine import parse_url
from app.storage.schema import findings, workspaces
from app.storage.store import DatabaseStore
from app.storage.trouble import StatementRefusedError, translated
from tests.databases import execute
from tests.processes import free_port
from tests.storage.making import (
    SECRET_KEY,
    WORKSPACE,
    claim,
    claim_all,
    conversation_ids,
    finish,
    save,
    sql,
    submit,
    verdict,
)


@pytest.mark.parametrize(
    "url",
    ["postgresql://nobody:hunter2@127.0.0.1:{port}/none", "sqlite:////nowhere/at/all.db"],
    ids=["postgres", "sqlite"],
)
async def test_a_database_that_is_away_is_told_soon(url: str) -> None:
    store = DatabaseStore(url.format(port=free_port()), SECRET_KEY)
    started = time.monotonic()
    for attempt in (store.begin, store.read):
        with pytest.raises(StoreUnavailableError) as told:
            async with attempt():
                pytest.fail("there is nothing to connect to")
        assert "hunter2" not in str(told.value)
    with pytest.raises(StoreUnavailableError):
        await store.check()
    assert time.monotonic() - started < 5
    assert "hunter2" not in repr(store)
    await store.aclose()
    await asyncio.sleep(0.05)  # the threads that could not open the file still have to tell this loop


async def test_a_server_on_its_way_back_is_waited_for(store: DatabaseStore, monkeypatch: pytest.MonkeyPatch) -> None:
    connect, failures = type(store._reading).connect, [OSError("refused"), OSError("refused")]

    def flaky(self: object) -> object:
        if failures:
            raise failures.pop()
        return connect(self)  # type: ignore[arg-type]  # an engine

    monkeypatch.setattr(type(store._reading), "connect", flaky)
    async with store.read() as reader:
        assert await reader.evaluation(WORKSPACE, "feval_none") is None
    assert not failures


async def test_when_every_connection_is_in_use_the_next_waits_in_vain(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "BUSY_SECONDS", 0.05)
    monkeypatch.setattr(store_module, "_CONNECT_DELAYS_SECONDS", ())
    small = DatabaseStore(database_url, SECRET_KEY, pool_size=1)
    async with small.read():
        with pytest.raises(StoreUnavailableError, match="in use"):
            async with small.read():
                pytest.fail("there is one connection")
    async with small.read() as reader:
        assert await reader.find_key("none") is None
    await small.aclose()


@pytest.mark.postgres
async def test_connections_cut_while_idle_are_replaced(postgres: str) -> None:
    store = DatabaseStore(postgres, SECRET_KEY, pool_size=5)
    for _ in range(2):
        await asyncio.gather(*(store.check() for _ in range(5)))
        await execute(postgres, _CUT_OTHERS)
        await asyncio.sleep(0.05)
    await asyncio.gather(*(store.check() for _ in range(5)))
    await store.aclose()


_CUT_OTHERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


@pytest.mark.postgres
async def test_a_connection_cut_in_a_transaction_loses_that_one_only(postgres: str) -> None:
    store = DatabaseStore(postgres, SECRET_KEY)
    with pytest.raises(StoreUnavailableError):  # noqa: PT012 - the transaction is what raises
        async with store.begin() as tx:
            await tx.ensure_key("1" * 64, name="n", workspace_id=WORKSPACE, scopes=[])
            await execute(postgres, _CUT_OTHERS)
            await tx.ensure_key("2" * 64, name="n", workspace_id=WORKSPACE, scopes=[])
    async with store.begin() as tx:
        assert await tx.find_key("1" * 64) is None
        await tx.ensure_key("3" * 64, name="n", workspace_id=WORKSPACE, scopes=[])
    await store.aclose()


@pytest.mark.postgres
async def test_a_connection_cut_before_the_commit_keeps_nothing(postgres: str) -> None:
    store = DatabaseStore(postgres, SECRET_KEY)
    with pytest.raises(StoreUnavailableError):  # noqa: PT012 - the commit is what raises
        async with store.begin() as tx:
            await tx.ensure_key("1" * 64, name="n", workspace_id=WORKSPACE, scopes=[])
            await execute(postgres, _CUT_OTHERS)
    async with store.read() as reader:
        assert await reader.find_key("1" * 64) is None
    await store.aclose()


async def test_an_error_of_the_caller_is_the_callers(store: DatabaseStore) -> None:
    for error in (OSError("mine"), TimeoutError("mine"), KeyError("mine")):
        with pytest.raises(type(error), match="mine"):
            async with store.begin():
                raise error


async def test_a_cancelled_transaction_is_rolled_back_and_blocks_nobody(store: DatabaseStore) -> None:
    ids = await conversation_ids(store, await submit(store, 30))

    async def slow(conversation_id: str) -> None:
        async with store.begin() as tx:
            await tx.claim(conversation_id, 60)
            await asyncio.sleep(30)

    for conversation_id in ids[:5]:
        task = asyncio.create_task(slow(conversation_id))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    many = [asyncio.create_task(claim(store, one)) for one in ids[5:25]]
    await asyncio.sleep(0.005)
    for one in many:
        one.cancel()
    await asyncio.gather(*many, return_exceptions=True)
    assert await claim(store, ids[0]) is not None
    assert await claim(store, ids[29]) is not None


async def test_refused_statements_say_nothing_of_their_values(
    store: DatabaseStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    broken = findings.insert().values(id="f", title="a secret sentence", verdict_id="verdict_none")
    missing = workspaces.insert().values(id=None)
    mistyped = findings.insert().values(id="f", position="a secret sentence")
    for statement in (broken, missing, mistyped):
        async with store._connection(store._writing) as connection:
            with pytest.raises(StatementRefusedError) as told, translated():
                await connection.execute(statement)
        assert told.value.__cause__ is None
        assert told.value.__suppress_context__
        assert "secret sentence" not in f"{told.value!r} {told.value}"
    assert "secret sentence" not in caplog.text


async def test_numbers_too_large_for_their_column_are_refused(store: DatabaseStore) -> None:
    [held] = await claim_all(store, await submit(store))
    with pytest.raises(StatementRefusedError):
        await save(store, held, [verdict("relevance", passed("fine", usage=Usage(1, 2**70)))])
    assert await finish(store, held) is not None


async def test_check_wants_the_current_schema(database_url: str) -> None:
    store = DatabaseStore(database_url, SECRET_KEY)
    await store.check()
    await sql(store, "UPDATE alembic_version SET version_num = 'older'")
    await store.check()  # known to be current once
    other = DatabaseStore(database_url, SECRET_KEY)
    with pytest.raises(StoreUnavailableError, match="forensic migrate"):
        await other.check()
    await sql(store, "UPDATE alembic_version SET version_num = '0001'")
    await other.check()
    await store.aclose()
    await other.aclose()


_WRITER = """
import asyncio, sys
from app.storage.store import DatabaseStore
async def main(url, name):
    store = DatabaseStore(url, "a secret of the tests")
    for number in range(30):
        async with store.begin() as tx:
            await tx.find_key("x")
            await asyncio.sleep(0.002)
            await tx.ensure_key(f"{name}{number}", name=name, workspace_id="ws_one", scopes=[])
    await store.aclose()
asyncio.run(main(*sys.argv[1:]))
"""


async def test_several_processes_write_at_once(store: DatabaseStore, database_url: str) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", _WRITER, database_url, name], cwd=Path(__file__).parents[2])  # noqa: ASYNC220 - short
        for name in ("a", "b")
    ]
    for number in range(30):
        async with store.begin() as tx:
            await tx.ensure_key(f"d{number}", name="d", workspace_id=WORKSPACE, scopes=[])
    assert [await asyncio.to_thread(process.wait, 60) for process in processes] == [0, 0]
    assert await sql(store, "SELECT count(*) FROM api_keys WHERE name IN ('a', 'b', 'd')") == [(90,)]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgres://u:p@h:1/d", "postgresql+asyncpg://u:***@h:1/d"),
        ("postgresql://h/d?sslmode=require", "postgresql+asyncpg://h/d?ssl=require"),
        ("postgresql+psycopg://h/d", "postgresql+asyncpg://h/d"),
        ("sqlite:///relative.db", "sqlite+aiosqlite:///relative.db"),
    ],
)
def test_urls_get_their_driver(url: str, expected: str) -> None:
    assert parse_url(url).render_as_string() == expected


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://h/d"])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"SQLite needs a file|no database of the kind"):
        parse_url(url)


async def test_sqlite_is_durable_and_keeps_its_references(sqlite: str) -> None:
    store = DatabaseStore(sqlite, SECRET_KEY)
    async with store._connection(store._writing) as connection:
        pragmas = {
            name: (await connection.execute(text(f"PRAGMA {name}"))).scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 15000}
    await store.aclose()
