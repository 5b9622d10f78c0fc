"""Events and exports: complete, in order, bounded, and closed when nobody listens any more."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from app.api.streams import Stream, events, json_lines, started
from app.pipeline.errors import NotFoundError, StoreUnavailableError
from app.storage.store import DatabaseStore
from tests.api.conftest import PATH, submitted, talk
from tests.api.contract import validator
from tests.api.exchange import exchange
from tests.api.judging import judge
from tests.api.loopback import serving
from tests.api.stand_ins import KEY

MINE = {"authorization": f"Bearer {KEY}"}


def states(stream: str) -> list[dict[str, Any]]:
    """Return the evaluations in a stream of events."""
    blocks = [block for block in stream.split("\n\n") if block and not block.startswith(":")]
    found = []
    for block in blocks:
        name, data = block.split("\n")
        assert name == "event: evaluation"
        found.append(json.loads(data.removeprefix("data: ")))
    return found


async def test_events_of_what_has_ended_are_its_last_state(client: httpx2.AsyncClient, store: DatabaseStore) -> None:
    evaluation = await submitted(client)
    await judge(store, evaluation["id"])
    answer = await client.get(f"{PATH}/{evaluation['id']}/events")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert states(answer.text) == [(await client.get(f"{PATH}/{evaluation['id']}")).json()]


async def test_events_follow_an_evaluation_to_its_end(client: httpx2.AsyncClient, store: DatabaseStore) -> None:
    evaluation = await submitted(client, talk(), talk())
    following = asyncio.ensure_future(client.get(f"{PATH}/{evaluation['id']}/events"))
    await asyncio.sleep(0.1)
    await judge(store, evaluation["id"])
    answer = await asyncio.wait_for(following, 5)
    found = states(answer.text)
    assert [one["status"] for one in (found[0], found[-1])] == ["queued", "completed"]
    assert ": " in answer.text, "silence is broken by comments"
    for one in found:
        validator("Evaluation").validate(one)


async def test_nothing_to_follow_or_export_is_a_plain_answer(client: httpx2.AsyncClient) -> None:
    for part in ("events", "export"):
        answer = await client.get(f"{PATH}/feval_{'0' * 32}/{part}")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_an_export_is_everything_one_object_a_line(client: httpx2.AsyncClient, store: DatabaseStore) -> None:
    evaluation = await submitted(client, *(talk(f"Reply {n}.") for n in range(110)))
    await judge(store, evaluation["id"])
    path = f"{PATH}/{evaluation['id']}"
    answer = await client.get(f"{path}/export", params={"format": "jsonl"})
    assert answer.headers["content-type"] == "application/jsonl"
    assert f'filename="{evaluation["id"]}.jsonl"' in answer.headers["content-disposition"]
    assert answer.text.endswith("\n")
    lines = [json.loads(line) for line in answer.text.splitlines()]
    kinds = [line["object"] for line in lines]
    assert kinds == ["forensic_evaluation"] + ["conversation"] * 110 + ["verdict"] * 550 + ["finding"] * 330
    assert lines[0] == (await client.get(path)).json()
    for part, kind in (("conversations", "conversation"), ("verdicts", "verdict"), ("findings", "finding")):
        listed = (await client.get(f"{path}/{part}", params={"limit": 100})).json()["data"]
        assert [line for line in lines if line["object"] == kind][:100] == listed


@pytest.mark.parametrize("query", ["format=csv", "format=", "fields=id"])
async def test_there_is_one_format(client: httpx2.AsyncClient, query: str) -> None:
    evaluation = await submitted(client)
    answer = await client.get(f"{PATH}/{evaluation['id']}/export?{query}")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_parameter")


async def test_over_a_socket_each_state_comes_when_it_is_one(app: FastAPI, store: DatabaseStore) -> None:
    with serving(app) as port:
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=MINE, timeout=10) as client:
            evaluation = await submitted(client)
            seen: list[str] = []
            async with client.stream("GET", f"{PATH}/{evaluation['id']}/events") as answer:
                async for text in answer.aiter_text():
                    seen.append(text)
                    if len(seen) == 2:
                        await judge(store, evaluation["id"])
    found = states("".join(seen))
    assert found[0]["status"] == "queued"
    assert found[-1]["status"] == "completed"


class Source:
    """An endless source that knows whether it was closed."""

    def __init__(self) -> None:
        self.closed = asyncio.Event()

    async def chunks(self, pause: float = 0.0) -> AsyncIterator[bytes]:
        try:
            while True:
                await asyncio.sleep(pause)
                yield b"x"
        finally:
            await asyncio.sleep(0)  # what releases a connection awaits, too
            self.closed.set()


@pytest.mark.parametrize("pause", [0.0, 60.0], ids=["while sending", "while waiting"])
async def test_a_stream_nobody_reads_is_closed_at_once(pause: float) -> None:
    source = Source()
    gone = asyncio.Event()

    async def receive() -> dict[str, Any]:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(_: Any) -> None:
        await asyncio.sleep(0)

    sending = asyncio.ensure_future(Stream(source.chunks(pause), "text/plain")({"type": "http"}, receive, send))
    await asyncio.sleep(0.02)
    gone.set()
    with pytest.raises(Exception):  # noqa: B017, PT011 - a disconnected client, whatever it is called
        await asyncio.wait_for(sending, 1)
    assert source.closed.is_set()


async def test_waiting_for_nobody_ends(app: FastAPI, client: httpx2.AsyncClient) -> None:
    evaluation = await submitted(client)
    path = f"{PATH}/{evaluation['id']}"
    gone: list[dict[str, Any]] = [
        {"type": "http.request", "body": b"", "more_body": False},
        {"type": "http.disconnect"},
    ]
    sent = await asyncio.wait_for(exchange(app, gone, method="GET", path=path, query=b"wait=60"), 1)
    assert sent == []


async def test_what_breaks_off_is_not_an_end() -> None:
    async def broken() -> AsyncIterator[Any]:
        for each in list[Any]():
            yield each
        raise StoreUnavailableError

    with pytest.raises(StoreUnavailableError):
        [line async for line in json_lines(broken())]
    with pytest.raises(StoreUnavailableError):
        [event async for event in events(broken(), 1)]


async def test_a_start_that_fails_is_known_before_anything_is_sent() -> None:
    async def missing() -> AsyncIterator[Any]:
        for each in list[Any]():
            yield each
        raise NotFoundError

    with pytest.raises(NotFoundError):
        await started(missing())
