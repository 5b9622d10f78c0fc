"""What storing costs: rows a second beside bare COPY of the same rows, client CPU a finding, and a status poll.

Run ``python -m benchmarks.storage [--rounds N] [--json]``. Rates and CPU are the best of interleaved rounds, since
other work on the machine only ever slows them; ratios are of two such rates; the stall is the median of each round's
longest. On SQLite, which has no COPY, ``executemany`` of the driver takes its place. Exits 1 when PostgreSQL is over a
budget; SQLite runs its database inside this process, so its CPU is no client's.
"""

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

from sqlalchemy import Table, select
from sqlalchemy.ext.asyncio import AsyncEngine

from app.evaluation.model import EvaluationRequest, NewConversation
from app.findings.model import Verdict
from app.ids import new_id
from app.pipeline.values import Claim, NewEvaluation
from app.storage.engine import for_writing, open_engine
from app.storage.evaluation_rows import conversation_row
from app.storage.migrating import migrate
from app.storage.schema import conversation_bodies, conversations, evaluation_requests, evaluations, findings, verdicts
from app.storage.store import DatabaseStore
from app.storage.verdict_rows import finding_rows, verdict_row
from benchmarks.storage_rows import PER_VERDICT, some_conversations, some_verdict
from tests.databases import throwaway_postgres

WORKSPACE = "ws_bench"
CONVERSATIONS = 10_000
SMALL, LARGE = 400, 40
"""Transactions: of one verdict each, and of 200 each."""
VERDICTS = range(200)
POLLS = 500

RATIOS = (
    ("conversations / COPY", "conversations/s", "COPY conversations/s"),
    ("findings / COPY", "findings/s", "COPY findings/s"),
    ("polls / bare Core route", "polls/s", "bare Core polls/s"),
)
Figures: TypeAlias = dict[str, float]
BUDGETS = {
    "conversations / COPY": (">=", 0.7),
    "findings / COPY": (">=", 0.35),
    "CPU ms a finding, 5 a transaction": ("<=", 0.25),
    "CPU ms a finding, 1,000 a transaction": ("<=", 0.05),
    "polls / bare Core route": (">=", 0.6),
    "event loop stall ms": ("<=", 50.0),
}


async def add_evaluation(store: DatabaseStore, batch: Sequence[NewConversation], *, empty: bool = False) -> str:
    """Store an evaluation through the port."""
    evaluation_id = new_id("feval")
    async with store.begin() as tx:
        await tx.add_evaluation(NewEvaluation(evaluation_id, WORKSPACE, EvaluationRequest(), len(batch), ()))
        if not empty:
            await tx.add_conversations(WORKSPACE, evaluation_id, batch)
    return evaluation_id


async def remove(store: DatabaseStore, evaluation_id: str) -> None:
    """Delete an evaluation through the port."""
    async with store.begin() as tx:
        assert await tx.delete(WORKSPACE, evaluation_id)


async def copy(engine: AsyncEngine, *tables: tuple[Table, list[dict[str, Any]]]) -> float:
    """Return the seconds in which the driver alone stores rows that are ready."""
    ready = [
        (table.name, list(rows[0]), [tuple(map(_encoded, row.values())) for row in rows]) for table, rows in tables
    ]
    async with for_writing(engine).connect() as connection:
        raw: Any = (await connection.get_raw_connection()).driver_connection
        await connection.execute(select(1))  # the driver's BEGIN
        started = time.perf_counter()
        for name, columns, records in ready:
            if engine.dialect.name == "postgresql":
                await raw.copy_records_to_table(name, columns=columns, records=records)
            else:
                marks = ", ".join("?" * len(columns))
                await raw.executemany(f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({marks})", records)  # noqa: S608 - our names
        await connection.commit()
        return time.perf_counter() - started


def _encoded(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict | tuple) else value


async def measure_conversations(store: DatabaseStore, engine: AsyncEngine, batch: list[NewConversation]) -> Figures:
    """Compare the port with COPY, and watch the loop meanwhile."""
    bare = await add_evaluation(store, batch, empty=True)
    rows = [conversation_row(WORKSPACE, bare, new) for new in batch]
    bodies = [{"conversation_id": row["id"], "body": new.body} for row, new in zip(rows, batch, strict=True)]
    copied = len(batch) / await copy(engine, (conversations, rows), (conversation_bodies, bodies))
    await remove(store, bare)
    gaps: list[float] = []
    watch = asyncio.create_task(_watch(gaps))
    await asyncio.sleep(0.01)
    started, cpu = time.perf_counter(), time.process_time()
    evaluation_id = await add_evaluation(store, batch)
    stored = len(batch) / (time.perf_counter() - started)
    cpu = time.process_time() - cpu
    watch.cancel()
    started = time.perf_counter()
    await remove(store, evaluation_id)
    return {
        "COPY conversations/s": copied,
        "conversations/s": stored,
        "CPU ms a conversation": cpu / len(batch) * 1e3,
        "event loop stall ms": max(gaps) * 1e3,
        "deleted conversations/s": len(batch) / (time.perf_counter() - started),
    }


async def _watch(gaps: list[float]) -> None:
    """Note how much later than asked for the loop comes back."""
    while True:
        started = time.perf_counter()
        await asyncio.sleep(0.001)
        gaps.append(time.perf_counter() - started)


async def measure_findings(store: DatabaseStore, engine: AsyncEngine, batch: list[NewConversation]) -> Figures:
    """Compare saving verdicts in large flushes with COPY of the same rows, and measure small ones."""
    bare = await add_evaluation(store, batch[:LARGE])
    async with engine.connect() as connection:
        them = select(conversations).where(conversations.c.evaluation_id == bare)
        about = (await connection.execute(them)).all()
    verdict_rows: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    for conversation in about:
        for number in VERDICTS:
            verdict = some_verdict(number)
            verdict_rows.append(verdict_row(conversation, verdict))
            rows += finding_rows(verdict_rows[-1], verdict.decision.findings)
    copied = len(rows) / await copy(engine, (verdicts, verdict_rows), (findings, rows))
    core_cpu = await _insert(
        engine, [list(finding_rows(row, some_verdict(0).decision.findings)) for row in verdict_rows[:SMALL]]
    )
    await remove(store, bare)
    evaluation_id = await add_evaluation(store, batch[: SMALL + LARGE])
    claims = await _claim_all(store)
    few, many = [some_verdict(0)], [some_verdict(number) for number in VERDICTS]
    small, small_cpu = await _save(store, [(held, few) for held in claims[:SMALL]])
    large, large_cpu = await _save(store, [(held, many) for held in claims[SMALL:]])
    await remove(store, evaluation_id)
    return {
        "COPY findings/s": copied,
        "findings/s": large,
        "CPU ms a finding, 1,000 a transaction": large_cpu,
        "findings/s, 5 a transaction": small,
        "CPU ms a finding, 5 a transaction": small_cpu,
        "bare Core CPU ms a finding, 5 a transaction": core_cpu,
    }


async def _insert(engine: AsyncEngine, transactions: list[list[dict[str, Any]]]) -> float:
    """Return the milliseconds of CPU a finding when Core does nothing but insert findings, some a transaction."""
    cpu = time.process_time()
    for rows in transactions:
        async with for_writing(engine).begin() as connection:
            await connection.execute(
                findings.insert(), [{**row, "ordinal": row["ordinal"] + PER_VERDICT} for row in rows]
            )
    return (time.process_time() - cpu) / (PER_VERDICT * len(transactions)) * 1e3


async def _claim_all(store: DatabaseStore) -> list[Claim]:
    claims = []
    async with store.begin() as tx:
        ids = await tx.due(window=SMALL + LARGE, republish_after_seconds=60)
    for one in ids:
        async with store.begin() as tx:
            held = await tx.claim(one, 600)
        assert held is not None
        claims.append(held)
    return claims


async def _save(store: DatabaseStore, work: list[tuple[Claim, list[Verdict]]]) -> tuple[float, float]:
    """Return findings a second and milliseconds of CPU a finding, one transaction a conversation."""
    number = sum(PER_VERDICT * len(some) for _, some in work)
    started, cpu = time.perf_counter(), time.process_time()
    for held, some in work:
        async with store.begin() as tx:
            assert await tx.save_verdicts(held.lease, some)
    return number / (time.perf_counter() - started), (time.process_time() - cpu) / number * 1e3


async def measure_polls(store: DatabaseStore, engine: AsyncEngine, batch: list[NewConversation]) -> Figures:
    """Compare a status poll with reading the same row in bare Core, in a transaction of its own each."""
    evaluation_id = await add_evaluation(store, batch[:10])
    bare = select(evaluations, evaluation_requests).join_from(evaluations, evaluation_requests)

    async def core() -> None:
        async with engine.connect() as connection:
            assert (await connection.execute(bare.where(evaluations.c.id == evaluation_id))).one()

    async def poll() -> None:
        async with store.read() as reader:
            assert await reader.evaluation(WORKSPACE, evaluation_id)

    core_rate, rate = await _rate(core), await _rate(poll)
    await remove(store, evaluation_id)
    return {"bare Core polls/s": core_rate, "polls/s": rate}


async def _rate(one: Callable[[], Awaitable[None]]) -> float:
    await one()
    started = time.perf_counter()
    for _ in range(POLLS):
        await one()
    return POLLS / (time.perf_counter() - started)


async def measured(url: str, batch: list[NewConversation], rounds: int) -> Figures:
    """Return the figures of one database."""
    await migrate(url)
    store, engine = DatabaseStore(url, "a secret of the benchmark"), open_engine(url, 1)
    async with store.begin() as tx:
        await tx.ensure_key("0" * 64, name="bench", workspace_id=WORKSPACE, scopes=[])
    all_rounds: list[Figures] = []
    for _ in range(rounds):
        of_round: Figures = {}
        for measure in (measure_conversations, measure_findings, measure_polls):
            of_round |= await measure(store, engine, batch)
        all_rounds.append(of_round)
    await store.aclose()
    await engine.dispose()
    best = {name: _best(name, [one[name] for one in all_rounds]) for name in all_rounds[0]}
    return best | {name: best[ours] / best[theirs] for name, ours, theirs in RATIOS}


def _best(name: str, values: list[float]) -> float:
    if "CPU" in name:
        return min(values)
    return max(values) if "/s" in name else statistics.median(values)


def over_budget(figures: Mapping[str, float]) -> list[str]:
    """Return the budgets that were not kept."""
    return [
        name
        for name, (relation, limit) in BUDGETS.items()
        if (figures[name] < limit if relation == ">=" else figures[name] > limit)
    ]


def main() -> int:
    """Measure both databases and print what was found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.storage")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    random.seed(1)
    batch = some_conversations(CONVERSATIONS)
    with throwaway_postgres() as url:
        postgres = asyncio.run(measured(url, batch, options.rounds))
    with tempfile.TemporaryDirectory() as directory:
        sqlite = asyncio.run(measured(f"sqlite:///{directory}/bench.db", batch, options.rounds))
    if options.json:
        print(json.dumps({"postgresql": postgres, "sqlite": sqlite}, indent=1))
    else:
        print(f"{f'best of {options.rounds}':48}{'PostgreSQL':>12}{'SQLite':>12}  budget (PostgreSQL)")
        for name, value in postgres.items():
            budget = " ".join(map(str, BUDGETS.get(name, ())))
            print(f"{name:48}{value:12,.2f}{sqlite[name]:12,.2f}  {budget}")
    over = over_budget(postgres)
    if over:
        print("over budget: " + ", ".join(over), file=sys.stderr)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
