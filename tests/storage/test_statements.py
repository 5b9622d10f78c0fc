"""How many statements a step sends: fixed numbers, whatever the number of rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event

from app.findings.model import Subject
from app.pipeline.values import FindingFilter, Page, VerdictFilter
from app.storage.store import DatabaseStore
from tests.storage.making import (
    SOME_VERDICTS,
    WORKSPACE,
    claim_all,
    conversation_ids,
    finish_in,
    save,
    sql,
    submit,
    verdict,
)


@contextmanager
def sent(store: DatabaseStore) -> Iterator[list[str]]:
    """Collect the statements sent meanwhile, BEGIN and COPY apart."""
    statements: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if not statement.startswith("BEGIN"):
            statements.append(statement)

    engine = store._engine.sync_engine
    event.listen(engine, "before_cursor_execute", note)
    yield statements
    event.remove(engine, "before_cursor_execute", note)


async def test_a_status_poll_is_one_read_by_primary_key(store: DatabaseStore) -> None:
    evaluation_id = await submit(store, 3)
    with sent(store) as statements:
        async with store.read() as reader:
            await reader.evaluation(WORKSPACE, evaluation_id)
    assert len(statements) == 1
    [plan] = [await explain(store, statements[0], evaluation_id)]
    assert "SCAN" not in plan.upper().replace("INDEX SCAN", "").replace("INDEX ONLY SCAN", "")


async def explain(store: DatabaseStore, statement: str, evaluation_id: str) -> str:
    """Return how the database would find an evaluation, tables of any size supposed."""
    postgres = store._engine.dialect.name == "postgresql"
    async with store._engine.begin() as connection:
        if postgres:
            await connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        prefix = "EXPLAIN " if postgres else "EXPLAIN QUERY PLAN "
        rows = await connection.exec_driver_sql(prefix + statement, (evaluation_id, WORKSPACE))
        return "\n".join(str(row[-1]) for row in rows)


async def test_saving_takes_few_statements_however_many_verdicts(store: DatabaseStore) -> None:
    [held] = await claim_all(store, await submit(store))
    for number in (1, 40):
        more = [
            verdict(f"d{number}", one.decision, subject=Subject("turn", turn))
            for turn in range(number)
            for one in SOME_VERDICTS
        ]
        with sent(store) as statements:
            await save(store, held, more)
        assert len(statements) <= 4, statements


async def test_judging_a_conversation_takes_few_statements(store: DatabaseStore) -> None:
    evaluation_id = await submit(store, 2)
    first, second = await conversation_ids(store, evaluation_id)
    async with store.begin() as tx:
        with sent(store) as statements:
            held = await tx.claim(first, 60)
        assert held is not None
        assert len(statements) == 4
    await save(store, held, SOME_VERDICTS)
    async with store.begin() as tx:
        with sent(store) as statements:
            await finish_in(tx, held)
        assert len(statements) == 6
        with sent(store) as statements:
            assert await tx.due(window=9, republish_after_seconds=9) == [second]
        assert len(statements) == 2
        with sent(store) as statements:
            await tx.extend(held.lease, 9)
        assert len(statements) == 1


async def test_a_page_takes_two_statements_however_long(store: DatabaseStore) -> None:
    evaluation_id = await submit(store, 9)
    for held in await claim_all(store, evaluation_id):
        await save(store, held, SOME_VERDICTS)
    async with store.read() as reader:
        for limit in (1, 30):
            with sent(store) as statements:
                page = await reader.verdicts(WORKSPACE, evaluation_id, VerdictFilter(), Page(limit))
                await reader.verdicts(WORKSPACE, evaluation_id, VerdictFilter(), Page(limit, page.data[0].id))
                await reader.findings(WORKSPACE, evaluation_id, FindingFilter(), Page(limit))
            assert len(statements) == 1 + 2 + 1


async def test_the_index_of_due_conversations_is_used(store: DatabaseStore) -> None:
    await submit(store, 300)
    if store._engine.dialect.name == "postgresql":
        await sql(store, "ANALYZE conversations")
    with sent(store) as statements:
        async with store.begin() as tx:
            await tx.due(window=9, republish_after_seconds=9)
            await tx.expired(max_attempts=3, lease_seconds=9)
    counting, marking, reaping = statements
    for statement, index in (
        (counting, "ix_conversations_published"),
        (marking, "ix_conversations_due"),
        (reaping, "ix_conversations_leased"),
    ):
        assert index in await plan_of(store, statement)


async def plan_of(store: DatabaseStore, statement: str) -> str:
    """Return the plan of a statement whose parameters are all numbers."""
    postgres = store._engine.dialect.name == "postgresql"
    number = max(statement.count("?"), *(statement.count(f"${one}::") and one for one in range(1, 9)))
    async with store._engine.begin() as connection:
        if postgres:
            await connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
            await connection.exec_driver_sql("SET LOCAL enable_sort = off")
        prefix = "EXPLAIN " if postgres else "EXPLAIN QUERY PLAN "
        rows = await connection.exec_driver_sql(prefix + statement, (1,) * number)
        return "\n".join(str(row[-1]) for row in rows)
