"""Conversations, verdicts and findings of a judged evaluation, filtered and walked."""

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.api.conftest import PATH, an_api, client_of, copied, opened_store, submitted, talk
from tests.api.contract import described
from tests.api.judging import EVIDENCE, judge
from tests.api.stand_ins import TrustingIntake

SENT = (talk("One.", id="mine", metadata={"n": 10**30}), talk("Two."), talk("Three."))


@pytest.fixture(scope="module")
def judged(migrated: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A database with a judged evaluation of three conversations, and its path."""
    database = copied(migrated, tmp_path_factory.mktemp("judged"))

    async def fill() -> str:
        async with opened_store(database) as store, client_of(an_api(store, TrustingIntake())) as client:
            evaluation = await submitted(client, *SENT)
            await judge(store, evaluation["id"])
            return f"{PATH}/{evaluation['id']}"

    return database, asyncio.run(fill())


@pytest.fixture
async def client(judged: tuple[Path, str]) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of an API on that database, which nothing here changes."""
    async with opened_store(judged[0]) as store, client_of(an_api(store, TrustingIntake())) as client:
        yield client


@pytest.fixture
def path(judged: tuple[Path, str]) -> str:
    """The evaluation's path."""
    return judged[1]


async def listed(client: httpx2.AsyncClient, path: str, **query: Any) -> list[dict[str, Any]]:
    answer = await client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    data: list[dict[str, Any]] = answer.json()["data"]
    return data


async def test_conversations_are_listed_as_they_were_sent(client: httpx2.AsyncClient, path: str) -> None:
    first, *rest = await listed(client, f"{path}/conversations")
    sent = json.dumps(SENT[0]).encode()
    assert (first["index"], first["client_id"], first["metadata"]) == (0, "mine", {"n": 10**30})
    assert (first["format"], first["status"], first["result"]) == ("messages", "completed", "fail")
    assert (first["bytes"], first["sha256"]) == (len(sent), hashlib.sha256(sent).hexdigest())
    assert (first["stored_sha256"], first["redactions"], first["warnings"]) == (first["sha256"], [], [])
    assert [each["index"] for each in rest] == [1, 2]
    assert set(first) == {
        "id", "object", "index", "client_id", "metadata", "format", "status", "result", "sha256", "stored_sha256",
        "bytes", "redactions", "warnings",
    }  # fmt: skip


async def test_a_conversation_comes_with_its_content(client: httpx2.AsyncClient, path: str) -> None:
    answer = await client.get(f"{path}/conversations/1")
    body = json.loads(answer.content, object_pairs_hook=_no_twins)
    [one] = [each for each in await listed(client, f"{path}/conversations") if each["index"] == 1]
    assert {name: body[name] for name in one} == one
    assert [event["text"] for event in body["events"]] == ["Where is my bike?", "Two."]
    assert (body["calls"], body["catalogue"]) == ([], [])


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs), "a key comes twice"
    return dict(pairs)


async def test_the_original_is_what_was_sent_and_says_its_digest(client: httpx2.AsyncClient, path: str) -> None:
    answer = await client.get(f"{path}/conversations/2/original")
    assert answer.content == json.dumps(talk("Three.")).encode()
    assert answer.headers["content-type"] == "application/json"
    digest = base64.b64encode(hashlib.sha256(answer.content).digest()).decode()
    assert answer.headers["repr-digest"] == f"sha-256=:{digest}:"


@pytest.mark.parametrize("index", ["3", "-1", "x", "1.0", "9" * 30, "1" * 5000, "%00", "\u0661"])
@pytest.mark.parametrize("part", ["", "/original"])
async def test_there_is_no_other_conversation(client: httpx2.AsyncClient, path: str, index: str, part: str) -> None:
    answer = await client.get(f"{path}/conversations/{index}{part}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_a_verdict_tells_all(client: httpx2.AsyncClient, path: str) -> None:
    verdicts = await listed(client, f"{path}/verdicts", conversation=1)
    by_dimension = {verdict["dimension"]: verdict for verdict in verdicts}
    rude = by_dimension["manners"]
    assert rude["subject"] == {"level": "turn", "turn": 0, "event": None, "call_id": None, "expectation": None}
    assert (rude["status"], rude["passed"], rude["label"], rude["score"]) == ("scored", False, "rude", 1)
    assert (rude["scale"], rude["threshold"], rude["method"], rude["model"]) == ("1-5", 3, "llm", "judge-1")
    assert (rude["coverage"], rude["votes"], rude["disputed"], rude["dropped_findings"]) == (
        {"events_seen": 2, "events_total": 2, "chunks": 1}, {"cast": 3, "agree": 2}, True, 1
    )  # fmt: skip
    assert (rude["usage"]["cost_usd"], by_dimension["order"]["usage"]["cost_usd"]) == (0.25, None)
    assert by_dimension["soundness"]["details"] == {"seen": {"a": [1, None]}}
    assert by_dimension["order"]["subject"]["call_id"] == "call_1"
    assert {name: verdict["reason_code"] for name, verdict in by_dimension.items()} == {
        "soundness": None, "manners": None, "order": "no_calls", "tone": "no_judge_model", "facts": "timeout"
    }  # fmt: skip


async def test_a_finding_cites_its_evidence(client: httpx2.AsyncClient, path: str) -> None:
    findings = await listed(client, f"{path}/findings", severity="high", conversation=0)
    verdicts = await listed(client, f"{path}/verdicts", dimension="manners", conversation=0)
    [finding] = findings
    assert finding["verdict_id"] == verdicts[0]["id"]
    assert (finding["code"], finding["turn"], finding["dimension"], finding["family"]) == (
        "unsaid", 0, "manners", "output"
    )  # fmt: skip
    assert finding["evidence"] == [
        {
            "source": one.source, "event": one.event, "pointer": one.pointer, "start": one.start, "end": one.end,
            "quote": one.quote, "role": one.role,
        }
        for one in EVIDENCE
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "each"),
    [
        ({}, 5),
        ({"dimension": "manners"}, 1),
        ({"dimension": ["manners", "tone"]}, 2),
        ({"dimension": "no-such"}, 0),
        ({"family": "tool"}, 2),
        ({"status": "scored"}, 2),
        ({"status": ["error", "not_scored"]}, 2),
        ({"passed": "true"}, 1),
        ({"passed": "false"}, 1),
        ({"passed": "false", "family": "tool"}, 0),
    ],
)
async def test_verdicts_are_filtered(client: httpx2.AsyncClient, path: str, query: dict[str, Any], each: int) -> None:
    assert len(await listed(client, f"{path}/verdicts", **query)) == 3 * each
    assert len(await listed(client, f"{path}/verdicts", conversation=[0, 2], **query)) == 2 * each


@pytest.mark.parametrize(
    ("query", "each"),
    [
        ({}, 3),
        ({"severity": "high"}, 1),
        ({"severity": ["info", "low"]}, 2),
        ({"min_severity": "info"}, 3),
        ({"min_severity": "medium"}, 1),
        ({"min_severity": "critical"}, 0),
        ({"code": "curt"}, 1),
        ({"dimension": "soundness"}, 1),
        ({"family": "output", "min_severity": "low"}, 2),
    ],
)
async def test_findings_are_filtered(client: httpx2.AsyncClient, path: str, query: dict[str, Any], each: int) -> None:
    assert len(await listed(client, f"{path}/findings", **query)) == 3 * each
    assert len(await listed(client, f"{path}/findings", conversation=1, **query)) == each


@pytest.mark.parametrize("part", ["conversations", "verdicts", "findings"])
@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_parts_make_up_the_whole(client: httpx2.AsyncClient, path: str, part: str, order: str) -> None:
    whole = [one["id"] for one in await listed(client, f"{path}/{part}", limit=100, order=order)]
    walked: list[str] = []
    query: dict[str, Any] = {"limit": 2, "order": order}
    while True:
        page = (await client.get(f"{path}/{part}", params=query)).json()
        walked += [one["id"] for one in page["data"]]
        if not page["has_more"]:
            break
        query["after"] = page["last_id"]
    assert walked == whole
    assert len(set(walked)) == len(walked) == {"conversations": 3, "verdicts": 15, "findings": 9}[part]


@pytest.mark.parametrize(
    ("part", "query"),
    [
        ("conversations", {"dimension": "manners"}),
        ("conversations", {"status": "scored"}),
        ("verdicts", {"severity": "high"}),
        ("verdicts", {"passed": "maybe"}),
        ("verdicts", {"conversation": "-1"}),
        ("verdicts", {"conversation": str(2**31)}),
        ("findings", {"severity": "fatal"}),
        ("findings", {"min_severity": ""}),
        ("findings", {"dimension": "a\x00b"}),
        ("findings", {"code": "x" * 101}),
        ("findings", {"code": ["x"] * 101}),
        ("findings", {"after": "verdict_" + "0" * 32}),
    ],
)
async def test_filters_that_mean_nothing_are_refused(
    client: httpx2.AsyncClient, path: str, part: str, query: dict[str, Any]
) -> None:
    answer = await client.get(f"{path}/{part}", params=query)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_parameter")
    assert answer.json()["errors"][0]["parameter"] == next(iter(query))


NASTY = (
    *("", " ", "\x00", "\ufffd", "'", "%", "\\", "x" * 5000, "null", "None", "nan", "-inf", "1e400", "-1", "0", "1.0"),
    *("9" * 40, "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "2026-02-30T00:00:00Z", "{}", "[]", "true"),
    *("feval_" + "f" * 32, "conv_" + "0" * 32, "verdict_" + "0" * 31 + "\u0660"),
)


@pytest.mark.parametrize("part", ["", "/conversations", "/verdicts", "/findings", "/export", "of all"])
async def test_no_parameter_breaks_anything(client: httpx2.AsyncClient, path: str, part: str) -> None:
    target = PATH if part == "of all" else path + part
    template = PATH if part == "of all" else PATH + "/{evaluation_id}" + part
    parameters = described()["paths"][template]["get"]["parameters"]
    names = [each["name"] for each in parameters if each["in"] == "query" and each["name"] != "wait"]
    for name in [*names, "\x00", "\ud7ff"]:
        for value in NASTY:
            answer = await client.get(target, params={name: value})
            assert answer.status_code in {200, 422}, (name, value)
