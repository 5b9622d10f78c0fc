"""What a judged verdict costs from end to end: API and worker processes, PostgreSQL or SQLite, a judge of 200 ms.

Baseline in the same run: the openai SDK's own ``chat.completions.parse`` called the same number of times at the same
concurrency, which reads, stores and checks nothing. Efficiency is ideal wall time / real wall time, where ideal is
(judge calls / concurrency) x latency.

Run with ``python -m benchmarks.pipeline [--conversations N] [--postgres] [--json]``. Exits 1 over budget.
"""

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
from pydantic import BaseModel

from tests.databases import throwaway_postgres
from tests.processes import private_redis
from tests.stack import FORENSIC, Stack, running
from tests.stub_model import StubProcess, stub_process

LATENCY_SECONDS = 0.2
CPU_MS_BUDGET = 4.0
EFFICIENCY = {20: 0.90, 64: 0.75}
TICKS = os.sysconf("SC_CLK_TCK")


class Verdict(BaseModel):
    """The shape the baseline asks for."""

    reasoning: str
    label: str


def conversation(number: int) -> dict[str, Any]:
    """Return a conversation of about 3 KB with two calls: three questions for a model."""
    schema = {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}
    story = f"Order {number} was handed to the carrier on day {number % 28 + 1} and has been moving since. " * 8
    return {
        "items": [
            {"type": "message", "role": "user", "content": f"Where is order {number}? {story}"},
            {"type": "function_call", "call_id": "a", "name": "track", "arguments": f'{{"order": "{number}"}}'},
            {"type": "function_call_output", "call_id": "a", "output": json.dumps({"place": "Bremen", "log": story})},
            {"type": "function_call", "call_id": "b", "name": "refund", "arguments": f'{{"order": "{number}"}}'},
            {"type": "function_call_output", "call_id": "b", "output": '{"state": "done"}'},
            {"type": "message", "role": "assistant", "content": f"Order {number} is in Bremen. I refunded it."},
        ],
        "tools": [{"type": "function", "name": name, "parameters": schema} for name in ("track", "refund")],
    }


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and of the children it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(fields[index]) for index in (11, 12, 13, 14)) / TICKS


def tree(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    own = children.read_text().split() if children.exists() else []
    return [pid, *(each for child in own for each in tree(int(child)))]


def total_cpu(stack: Stack) -> float:
    """Return the CPU time of everything the product runs."""
    return sum(cpu_seconds(pid) for root in stack.pids for pid in tree(root))


@contextlib.contextmanager
def database(postgres: bool) -> Iterator[str | None]:
    """Yield a database URL; None is the embedded one."""
    if not postgres:
        yield None
        return
    with throwaway_postgres() as url:
        yield url


def ours(stub: StubProcess, conversations: int, concurrency: int, postgres: bool) -> dict[str, float]:
    """Run one evaluation and return its figures."""
    body = json.dumps({"conversations": [conversation(number) for number in range(conversations)]}).encode()
    with (
        tempfile.TemporaryDirectory() as directory,
        private_redis() as redis,
        database(postgres) as url,
        running(
            Path(directory), database_url=url, redis_url=redis.url, judge_base_url=stub.base_url, judge_model="stub",
            judge_api_key="none", judge_concurrency=str(concurrency), worker_max_jobs=str(max(8, concurrency)),
            log_level="warning",
        ) as stack,
    ):  # fmt: skip
        warm = json.dumps({"conversations": [conversation(0)]}).encode()
        stack.wait(stack.submit(warm).json()["id"])
        stub.control("/__reset", {})
        before, started = total_cpu(stack), time.perf_counter()
        evaluation_id = stack.submit(body).json()["id"]
        while stack.get(f"{FORENSIC}/{evaluation_id}")["status"] != "completed":
            time.sleep(0.1)
        wall, cpu = time.perf_counter() - started, total_cpu(stack) - before
        evaluation = stack.get(f"{FORENSIC}/{evaluation_id}")
        stats = stub.control("/__stats")
    calls = evaluation["usage"]["requests"]
    verdicts = sum(evaluation["verdicts"].values())
    return {
        "judge_calls": calls,
        "verdicts": verdicts,
        "wall_s": wall,
        "cpu_ms_per_verdict": cpu * 1000 / verdicts,
        "cpu_ms_per_judge_call": cpu * 1000 / calls,
        "efficiency": calls / concurrency * LATENCY_SECONDS / wall,
        "connections": stats["connections"],
    }


async def bare(stub: StubProcess, calls: int, concurrency: int) -> dict[str, float]:
    """Call the SDK's ``parse`` as often, with a prompt as long."""
    prompt = json.dumps(conversation(1))
    slots = asyncio.Semaphore(concurrency)
    async with openai.AsyncOpenAI(base_url=stub.base_url, api_key="none") as client:

        async def one() -> None:
            async with slots:
                await client.chat.completions.parse(
                    model="stub", messages=[{"role": "user", "content": prompt}], response_format=Verdict
                )

        before, started = time.process_time(), time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(calls):
                group.create_task(one())
    wall = time.perf_counter() - started
    return {
        "cpu_ms_per_judge_call": (time.process_time() - before) * 1000 / calls,
        "efficiency": calls / concurrency * LATENCY_SECONDS / wall,
    }


def median(rows: list[dict[str, float]]) -> dict[str, float]:
    """Return the median of each figure."""
    return {key: statistics.median(row[key] for row in rows) for key in rows[0]}


def main() -> int:
    """Measure, print and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--conversations", type=int, default=170)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    report: dict[str, Any] = {"database": "postgresql" if arguments.postgres else "sqlite", "rounds": arguments.rounds}
    broken = False
    for concurrency, least in EFFICIENCY.items():
        rows, baseline = [], []
        for _ in range(arguments.rounds):
            with stub_process(latency_ms=LATENCY_SECONDS * 1000) as stub:
                rows.append(ours(stub, arguments.conversations, concurrency, arguments.postgres))
                baseline.append(asyncio.run(bare(stub, int(rows[-1]["judge_calls"]), concurrency)))
        figures, other = median(rows), median(baseline)
        broken |= figures["cpu_ms_per_verdict"] > CPU_MS_BUDGET or figures["efficiency"] < least
        broken |= figures["connections"] > concurrency + 1
        report[f"concurrency_{concurrency}"] = {"ours": figures, "sdk_parse_alone": other}
    sys.stdout.write(json.dumps(report, indent=None if arguments.json else 2) + "\n")
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
