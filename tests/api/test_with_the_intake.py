"""The API on the intake it is shipped with: what the document offers is accepted, what comes back is sound."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.intake.process_intake import ProcessIntake
from app.pipeline.values import Rules
from app.storage.store import DatabaseStore
from tests.api.conftest import PATH, an_api, client_of
from tests.api.test_openapi import EXAMPLES, REQUESTS, loaded

ROOT = Path(__file__).parents[2]
RULES = Rules({"task_completion": True, "argument_validity": True})


@pytest.fixture
async def client(store: DatabaseStore) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of the API on the real intake."""
    intake = ProcessIntake(in_flight_bytes=2**27)
    async with client_of(an_api(store, intake, rules=RULES)) as client:
        yield client
    await intake.aclose()


async def post(client: httpx2.AsyncClient, body: bytes) -> httpx2.Response:
    return await client.post(PATH, content=body, headers={"content-type": "application/json"})


@pytest.mark.parametrize("path", REQUESTS, ids=lambda path: path.stem)
async def test_every_example_of_a_request_is_accepted(client: httpx2.AsyncClient, path: Path) -> None:
    request = loaded(path)
    answer = await post(client, json.dumps(request).encode())
    assert answer.status_code == 202, answer.text
    for index, conversation in enumerate(request["conversations"]):
        place = f"{answer.headers['location']}/conversations/{index}"
        assert (await client.get(f"{place}/original")).json() == conversation
        content = (await client.get(place)).json()
        assert len(content["events"]) == len(conversation.get("messages") or conversation["items"])


async def test_the_example_of_a_refusal_is_one(client: httpx2.AsyncClient) -> None:
    [example] = [loaded(path) for path in EXAMPLES if path.stem == "InvalidRequest"]
    talk = {"messages": [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": "Hello."}]}
    first = {"messages": [*talk["messages"], {"role": "tool", "content": "{}"}]}
    second = {"items": [{"type": "message", "role": "user", "content": "Hello?"}]}
    answer = await post(client, json.dumps({"conversations": [first, talk, talk, talk, second]}).encode())
    assert answer.status_code == 422
    assert {**answer.json(), "request_id": example["request_id"]} == example


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "json_invalid"),
        (b'{"conversations": [}', "json_invalid"),
        (b"\xff\xfe{}", "encoding_invalid"),
        (b'{"conversations": ' + b"[" * 200 + b"]" * 200 + b"}", "nesting_too_deep"),
        (b'{"conversations": [NaN]}', "number_not_finite"),
        (b"[]", "wrong_type"),
        (b"{}", "missing"),
        (b'{"conversations": []}', "empty"),
        (b'{"conversations": [{}]}', "no_container"),
    ],
)
async def test_every_broken_body_hears_why(client: httpx2.AsyncClient, body: bytes, code: str) -> None:
    answer = await post(client, body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert code in [error["code"] for error in answer.json()["errors"]]
    assert (await client.get(PATH)).json()["data"] == []


HOSTILE: dict[str, Any] = {
    "id": "\x00\ud800",
    "metadata": {"big": 10**400, "lone": "\udfff", "nul": "\x00", "deep": [[[[1.5]]]], "\ud800": None},
    "messages": [{"role": "user", "content": "\x00 \ud83d\ude00 \ud83d"}, {"role": "assistant", "content": "\x1b[2J"}],
}


async def test_what_cannot_be_shown_is_kept_and_replaced(client: httpx2.AsyncClient) -> None:
    conversation = json.dumps(HOSTILE).encode()
    body = b'{"name": "\\u0000\\ud800", "metadata": {"k": "\\ud800"}, "conversations": [' + conversation + b"]}"
    answer = await post(client, body)
    assert answer.status_code == 202, answer.text
    place = answer.headers["location"]
    for part in ("", "/conversations", "/conversations/0", "/verdicts", "/findings"):
        text = (await client.get(place + part)).text
        assert "\\ud800" not in text.lower()
        assert "\\u0000" not in text
    assert (await client.get(f"{place}/conversations/0/original")).content == conversation
    content = (await client.get(f"{place}/conversations/0")).json()
    assert [event["text"] for event in content["events"]] == ["\ufffd \U0001f600 \ufffd", "\x1b[2J"]


async def test_a_refusal_quotes_nothing_it_should_not(client: httpx2.AsyncClient) -> None:
    key = "\x1b]0;\u202e\ud800" * 500
    body = {"conversations": [{"messages": [{"role": key, "content": key, key: key}]}], key: key}
    answer = await post(client, json.dumps(body).encode())
    assert answer.status_code == 422
    assert len(answer.content) <= 64 * 1024
    for error in answer.json()["errors"]:
        assert len(error["message"]) <= 300
        assert error["message"].isprintable()
