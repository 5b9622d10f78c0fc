"""What a judge call costs: our client beside the SDK's ``.parse`` and bare aiohttp, in the same run at the same stub.

Run ``python -m benchmarks.judging`` (over a minute). CPU is this process's, in milliseconds a call, the median of
three interleaved rounds; the stub runs in a process of its own. Only ratios and counts are comparable between machines.
"""

import asyncio
import json
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Literal

import aiohttp
import httpx2
import openai
import pydantic

from app.judges.contract import Prompt
from app.llm.endpoint import ChatEndpoint
from app.llm.judge_model import OpenAIJudgeModel
from tests.stub_model import StubProcess, stub_process

ROUNDS = 3
CALLS = 600
LATENCY_MS = 50
SCHEMA = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string"},
        "label": {"type": "string", "enum": ["1", "2", "3", "4", "5", "cannot_determine"]},
        "findings": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "evidence": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {"event": {"type": "string"}, "quote": {"type": "string"}},
                            "required": ["event", "quote"],
                            "additionalProperties": False,
                        },
                    },
                    "description": {"type": "string"},
                },
                "required": ["evidence", "description"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["reasoning", "label", "findings"],
    "additionalProperties": False,
}
TRANSCRIPT = "\n".join(f"[e{n} assistant]\n  The order A-{n} was shipped on Monday." for n in range(40))
PROMPT = Prompt("task_completion", "Judge what is recorded. " * 40, TRANSCRIPT, "Was it done?", SCHEMA)


class _Quote(pydantic.BaseModel):
    event: str
    quote: str


class _Finding(pydantic.BaseModel):
    evidence: list[_Quote]
    description: str


class _Answer(pydantic.BaseModel):
    reasoning: str
    label: Literal["1", "2", "3", "4", "5", "cannot_determine"]
    findings: list[_Finding]


Ask = Callable[[], Awaitable[None]]
Client = Callable[[str, int], AbstractAsyncContextManager[Ask]]


def _messages() -> list[dict[str, str]]:
    asked = f"{PROMPT.transcript}\n\n{PROMPT.question}"
    return [{"role": "system", "content": PROMPT.system}, {"role": "user", "content": asked}]


@asynccontextmanager
async def ours(base_url: str, concurrency: int) -> AsyncIterator[Ask]:
    """Everything a judge call does: encode, send, read, validate, account."""
    endpoint = ChatEndpoint(base_url=base_url, api_key="none", concurrency=concurrency)
    model = OpenAIJudgeModel(endpoint, "stub", prices={"stub": (1.0, 0.5, 2.0)})

    async def ask() -> None:
        assert (await model.ask(PROMPT)).value["label"] == "5"

    yield ask
    await endpoint.aclose()


@asynccontextmanager
async def sdk_parse(base_url: str, concurrency: int) -> AsyncIterator[Ask]:
    """The SDK as its README shows it, one client for all calls."""
    limits = httpx2.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
    http_client = openai.DefaultAsyncHttpxClient(limits=limits)
    client = openai.AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0, http_client=http_client)

    async def ask() -> None:
        messages = [{"role": message["role"], "content": message["content"]} for message in _messages()]
        answer = await client.chat.completions.parse(
            model="stub",
            messages=messages,  # type: ignore[arg-type]  # plain dicts, as everybody passes them
            temperature=0,
            response_format=_Answer,
        )
        assert answer.choices[0].message.parsed is not None

    yield ask
    await client.close()


@asynccontextmanager
async def bare_aiohttp(base_url: str, concurrency: int) -> AsyncIterator[Ask]:
    """The floor: no checks, no retries, no accounting."""
    answer_format = {"name": "answer", "strict": True, "schema": SCHEMA}
    connector = aiohttp.TCPConnector(limit=concurrency)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def ask() -> None:
            body = {
                "model": "stub",
                "messages": _messages(),
                "temperature": 0,
                "response_format": {"type": "json_schema", "json_schema": answer_format},
            }
            async with session.post(f"{base_url}/chat/completions", json=body) as response:
                completion = await response.json()
            assert json.loads(completion["choices"][0]["message"]["content"])["label"] == "5"

        yield ask


async def measure(client: Client, base_url: str, concurrency: int, calls: int) -> tuple[float, float]:
    """Return (CPU milliseconds a call, wall seconds), connections opened beforehand."""
    slots = asyncio.Semaphore(concurrency)
    async with client(base_url, concurrency) as ask:

        async def bounded() -> None:
            async with slots:
                await ask()

        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(bounded())
        cpu, wall = time.process_time(), time.monotonic()
        async with asyncio.TaskGroup() as group:
            for _ in range(calls):
                group.create_task(bounded())
        return (time.process_time() - cpu) / calls * 1000, time.monotonic() - wall


CLIENTS: dict[str, Client] = {"ours": ours, ".parse": sdk_parse, "aiohttp": bare_aiohttp}


def costs(stub: StubProcess, concurrency: int) -> dict[str, float]:
    """Return the median CPU of a call for each client."""
    rounds: dict[str, list[float]] = {name: [] for name in CLIENTS}
    for _ in range(ROUNDS):
        for name, client in CLIENTS.items():
            rounds[name].append(asyncio.run(measure(client, stub.base_url, concurrency, CALLS))[0])
    return {name: statistics.median(values) for name, values in rounds.items()}


def main() -> None:
    """Measure and print."""
    print(f"CPU ms a call, {LATENCY_MS} ms stub, median of {ROUNDS}:")
    ours_by_concurrency = {}
    with stub_process(LATENCY_MS) as stub:
        for concurrency in (16, 64, 256):
            cost = costs(stub, concurrency)
            ours_by_concurrency[concurrency] = cost["ours"]
            shown = "  ".join(f"{name} {value:.2f}" for name, value in cost.items())
            print(
                f"  {concurrency:4} in flight: {shown}   ours/.parse {cost['ours'] / cost['.parse']:.2f} (goal <= 0.33)"
                f"   ours/aiohttp {cost['ours'] / cost['aiohttp']:.1f} (goal <= 5)"
            )
    print(f"  256 beside 64: {ours_by_concurrency[256] / ours_by_concurrency[64]:.2f} (goal <= 1.15)")
    print("Efficiency (ideal wall / wall), 500 calls, 200 ms stub:")
    with stub_process(200) as stub:
        for concurrency, goal in ((20, 0.90), (64, 0.75)):
            stub.control("/__reset", {})
            ideal = -(-500 // concurrency) * 0.2
            walls = [asyncio.run(measure(ours, stub.base_url, concurrency, 500))[1] for _ in range(ROUNDS)]
            seen = stub.control("/__stats")
            per_client = seen["connections"] / ROUNDS
            print(
                f"  {concurrency:4} in flight: {ideal / statistics.median(walls):.3f} (goal >= {goal})   "
                f"connections a client {per_client:.1f} (goal <= {concurrency + 1})   in flight {seen['max_in_flight']}"
            )


if __name__ == "__main__":
    main()
