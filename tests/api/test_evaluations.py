"""Evaluations: submit, poll, list, cancel, delete. Every answer is held against the OpenAPI document on its way."""

import asyncio
import time
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from app.storage.store import DatabaseStore
from tests.api.conftest import PATH, an_api, client_of, submitted, talk
from tests.api.judging import judge
from tests.api.stand_ins import AwayQueue, QuietQueue, TrustingIntake


async def test_a_submission_is_accepted_and_can_be_found(client: httpx2.AsyncClient, queue: QuietQueue) -> None:
    answer = await client.post(
        PATH, json={"conversations": [talk(), talk()], "name": "bikes", "metadata": {"a": "b"}, "judges": ["manners"]}
    )
    body = answer.json()
    assert answer.status_code == 202
    assert answer.headers["location"] == f"{PATH}/{body['id']}"
    assert int(answer.headers["retry-after"]) > 0
    assert "idempotency-replayed" not in answer.headers
    assert (body["status"], body["result"], body["name"], body["metadata"]) == ("queued", None, "bikes", {"a": "b"})
    assert body["progress"] == {
        "total": 2, "queued": 2, "in_progress": 0, "completed": 0, "failed": 0, "canceled": 0
    }  # fmt: skip
    assert body["judges"] == ["manners"]
    assert body["created_at"].endswith("Z")
    assert body["webhook"] is None
    assert (await client.get(answer.headers["location"])).json() == body
    assert len(queue.rung) == 2


async def test_warnings_say_which_conversation_and_place(client: httpx2.AsyncClient) -> None:
    assert (await submitted(client, name="warn"))["warnings"] == [
        {"conversation": 0, "pointer": "/messages/0", "code": "ignored", "message": "is ignored", "count": 2}
    ]


async def test_a_made_webhook_secret_is_shown_once(client: httpx2.AsyncClient) -> None:
    body: dict[str, Any] = {"conversations": [talk()], "webhook": {"url": "https://example.com/hook"}}
    first = await client.post(PATH, json=body, headers={"idempotency-key": "once"})
    assert first.json()["webhook"]["secret"].startswith("whsec_")
    again = await client.post(PATH, json=body, headers={"idempotency-key": "once"})
    later = await client.get(f"{PATH}/{first.json()['id']}")
    assert again.json()["webhook"] == later.json()["webhook"] == {"url": "https://example.com/hook"}


async def test_a_secret_of_the_client_is_never_shown(client: httpx2.AsyncClient) -> None:
    webhook = {"url": "https://example.com/hook", "secret": "whsec_" + "c2VjcmV0" * 4}
    answer = await submitted(client, webhook=webhook)
    assert answer["webhook"] == {"url": "https://example.com/hook"}


async def test_a_repeated_key_and_body_is_one_evaluation(client: httpx2.AsyncClient) -> None:
    body = {"conversations": [talk()]}
    headers = {"idempotency-key": "a key with spaces ~"}
    first, second = [await client.post(PATH, json=body, headers=headers) for _ in range(2)]
    assert (second.status_code, second.json()) == (202, first.json())
    assert second.headers["idempotency-replayed"] == "true"
    assert second.headers["location"] == first.headers["location"]
    assert len((await client.get(PATH)).json()["data"]) == 1


async def test_a_key_with_another_body_is_refused(client: httpx2.AsyncClient) -> None:
    headers = {"idempotency-key": "k"}
    await client.post(PATH, json={"conversations": [talk()]}, headers=headers)
    answer = await client.post(PATH, json={"conversations": [talk("Lost.")]}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_key_reused")
    assert len((await client.get(PATH)).json()["data"]) == 1


async def test_the_queue_is_not_needed_to_submit(store: DatabaseStore) -> None:
    async with client_of(an_api(store, TrustingIntake(), AwayQueue())) as client:
        assert (await submitted(client))["status"] == "queued"


async def test_a_poll_costs_nothing_until_something_changed(client: httpx2.AsyncClient, store: DatabaseStore) -> None:
    path = f"{PATH}/{(await submitted(client))['id']}"
    tag = (await client.get(path)).headers["etag"]
    for given in (tag, tag.removeprefix("W/"), f'"x", {tag}', "*"):
        unchanged = await client.get(path, headers={"if-none-match": given})
        assert (unchanged.status_code, unchanged.content, unchanged.headers["etag"]) == (304, b"", tag)
    assert (await client.get(path, headers={"if-none-match": '"another"'})).status_code == 200
    await judge(store, path.rpartition("/")[2])
    changed = await client.get(path, headers={"if-none-match": tag})
    assert (changed.status_code, changed.json()["status"]) == (200, "completed")
    assert changed.headers["etag"] != tag
    assert changed.headers["cache-control"] == "private, no-cache"


async def test_what_was_found_is_counted(client: httpx2.AsyncClient, store: DatabaseStore) -> None:
    evaluation = await submitted(client, talk(), talk())
    await judge(store, evaluation["id"])
    found = (await client.get(f"{PATH}/{evaluation['id']}")).json()
    assert (found["status"], found["result"]) == ("completed", "fail")
    assert found["verdicts"] == {"passed": 2, "failed": 2, "not_applicable": 2, "not_scored": 2, "error": 2}
    assert found["findings"] == {"info": 2, "low": 2, "medium": 0, "high": 2, "critical": 0}
    assert (found["by_dimension"]["manners"]["pass_rate"], found["by_dimension"]["tone"]["pass_rate"]) == (0, None)
    assert found["usage"]["prompt_tokens"] == 600
    assert found["finished_at"] >= found["started_at"] >= found["created_at"]


async def test_waiting_ends_with_the_evaluation(client: httpx2.AsyncClient, store: DatabaseStore) -> None:
    evaluation = await submitted(client)
    waiting = asyncio.ensure_future(client.get(f"{PATH}/{evaluation['id']}", params={"wait": "20"}))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    await judge(store, evaluation["id"])
    assert (await asyncio.wait_for(waiting, 5)).json()["status"] == "completed"


async def test_waiting_ends_with_patience(client: httpx2.AsyncClient) -> None:
    evaluation = await submitted(client)
    started = time.monotonic()
    answer = await client.get(f"{PATH}/{evaluation['id']}", params={"wait": "0.2"})
    assert (answer.json()["status"], answer.status_code) == ("queued", 200)
    assert 0.2 <= time.monotonic() - started < 2


@pytest.mark.parametrize("wait", ["-1", "61", "nan", "inf", "soon", ""])
async def test_patience_has_limits(client: httpx2.AsyncClient, wait: str) -> None:
    evaluation = await submitted(client)
    answer = await client.get(f"{PATH}/{evaluation['id']}", params={"wait": wait})
    assert (answer.status_code, answer.json()["errors"][0]["parameter"]) == (422, "wait")


async def test_lists_are_walked_by_cursor_in_both_directions(client: httpx2.AsyncClient) -> None:
    ids = [(await submitted(client))["id"] for _ in range(5)]
    for order, expected in (("desc", ids[::-1]), ("asc", ids)):
        walked: list[str] = []
        query: dict[str, Any] = {"limit": 2, "order": order}
        while True:
            page = (await client.get(PATH, params=query)).json()
            walked += [each["id"] for each in page["data"]]
            assert (page["first_id"], page["last_id"]) == (page["data"][0]["id"], page["data"][-1]["id"])
            if not page["has_more"]:
                break
            query["after"] = page["last_id"]
        assert walked == expected
    assert [each["id"] for each in (await client.get(PATH)).json()["data"]] == ids[::-1]


async def test_an_empty_list_says_so(client: httpx2.AsyncClient) -> None:
    assert (await client.get(PATH)).json() == {
        "object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False
    }  # fmt: skip


async def test_lists_are_filtered(client: httpx2.AsyncClient, store: DatabaseStore) -> None:
    done = await submitted(client)
    await judge(store, done["id"])
    waiting = await submitted(client)

    async def ids(**query: Any) -> list[str]:
        return [each["id"] for each in (await client.get(PATH, params=query)).json()["data"]]

    assert await ids(status="completed") == [done["id"]]
    assert await ids(status=["queued", "failed"]) == [waiting["id"]]
    assert await ids(status=["queued", "completed"]) == [waiting["id"], done["id"]]
    assert await ids(result="fail") == [done["id"]]
    assert await ids(result="pass") == []
    assert await ids(created_after=done["created_at"]) == [waiting["id"]]
    assert await ids(created_before=waiting["created_at"]) == [done["id"]]
    assert await ids(created_after="0", created_before="2030-01-01T00:00:00+02:00") == [waiting["id"], done["id"]]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("limit=0", "invalid_parameter"),
        ("limit=101", "invalid_parameter"),
        ("limit=many", "invalid_parameter"),
        ("order=up", "invalid_parameter"),
        ("status=done", "invalid_parameter"),
        ("created_after=yesterday", "invalid_parameter"),
        ("created_after=2026-01-01T00:00:00", "invalid_parameter"),
        ("after=x", "invalid_cursor"),
        ("after=%00", "invalid_cursor"),
        ("after=feval_" + "0" * 32, "invalid_cursor"),
        ("before=feval_" + "0" * 32, "unknown_parameter"),
        ("Limit=1", "unknown_parameter"),
        ("%00%F0%9F=1", "unknown_parameter"),
    ],
)
async def test_a_parameter_that_means_nothing_is_refused(client: httpx2.AsyncClient, query: str, code: str) -> None:
    answer = await client.get(f"{PATH}?{query}")
    [error] = answer.json()["errors"]
    assert (answer.status_code, answer.json()["code"], error["code"]) == (422, "invalid_parameter", code)
    assert answer.json()["error_count"] == 1


async def test_every_wrong_parameter_is_named(client: httpx2.AsyncClient) -> None:
    answer = await client.get(f"{PATH}?limit=0&colour=red&{'&'.join(f'p{n}=1' for n in range(200))}")
    assert (answer.json()["error_count"], len(answer.json()["errors"]), answer.json()["truncated"]) == (202, 100, True)


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", PATH), ("DELETE", ""), ("POST", "/cancel"), ("POST", "/rerun"), ("GET", "/events")],
)
async def test_where_there_are_no_parameters_all_are_refused(
    client: httpx2.AsyncClient, method: str, path: str
) -> None:
    evaluation = await submitted(client)
    target = path if path == PATH else f"{PATH}/{evaluation['id']}{path}"
    answer = await client.request(method, f"{target}?dry_run=true")
    assert (answer.status_code, answer.json()["errors"][0]["parameter"]) == (422, "dry_run")
    assert (await client.get(f"{PATH}/{evaluation['id']}")).json() == evaluation


async def test_canceling_twice_is_canceling_once(client: httpx2.AsyncClient) -> None:
    evaluation = await submitted(client)
    first, second = [await client.post(f"{PATH}/{evaluation['id']}/cancel") for _ in range(2)]
    assert (first.status_code, first.json()["status"], first.json()["result"]) == (200, "canceled", None)
    assert (second.status_code, second.json()) == (200, first.json())
    assert first.json()["progress"]["canceled"] == 1


async def test_what_has_ended_cannot_be_canceled(client: httpx2.AsyncClient, store: DatabaseStore) -> None:
    evaluation = await submitted(client)
    await judge(store, evaluation["id"])
    answer = await client.post(f"{PATH}/{evaluation['id']}/cancel")
    assert (answer.status_code, answer.json()["code"]) == (409, "already_finished")


async def test_what_is_deleted_is_gone(client: httpx2.AsyncClient, store: DatabaseStore) -> None:
    evaluation = await submitted(client)
    await judge(store, evaluation["id"])
    path = f"{PATH}/{evaluation['id']}"
    answer = await client.delete(path)
    assert (answer.status_code, answer.content) == (204, b"")
    for part in ("", "/conversations", "/conversations/0", "/conversations/0/original", "/verdicts", "/findings"):
        assert (await client.get(path + part)).status_code == 404
    assert (await client.delete(path)).status_code == 404


async def test_fixed_transcripts_are_not_run_again(client: httpx2.AsyncClient) -> None:
    evaluation = await submitted(client)
    answer = await client.post(f"{PATH}/{evaluation['id']}/rerun")
    assert (answer.status_code, answer.json()["code"]) == (409, "not_rerunnable")
    assert "cannot be re-run" in answer.json()["detail"]
    assert evaluation["rerunnable"] is False


async def test_at_the_limit_of_concurrency_one_key_is_one_evaluation(app: FastAPI, client: httpx2.AsyncClient) -> None:
    body = {"conversations": [talk()]}
    answers = await asyncio.gather(
        *(client.post(PATH, json=body, headers={"idempotency-key": "same"}) for _ in range(10))
    )
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert sum("idempotency-replayed" not in answer.headers for answer in answers) == 1
