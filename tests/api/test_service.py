"""Health, readiness and judges."""

import httpx2
import pytest

from app.api.collaborators import Limits
from tests.api.conftest import JUDGES, an_api, client_of
from tests.api.stand_ins import AwayQueue, AwayStore, SilentStore


async def test_the_process_is_alive_whatever_else_is_not() -> None:
    async with client_of(an_api(AwayStore(), queue=AwayQueue()), key=None) as client:
        answer = await client.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def test_it_is_ready_with_a_current_database(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ready", "store": "ok", "queue": "ok"})


async def test_it_is_ready_without_the_queue_and_says_so() -> None:
    async with client_of(an_api(queue=AwayQueue()), key=None) as client:
        answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ready", "store": "ok", "queue": "unavailable"})


@pytest.mark.parametrize("store", [AwayStore(), SilentStore()], ids=["away", "silent"])
async def test_it_is_not_ready_without_the_database(store: AwayStore) -> None:
    async with client_of(an_api(store, limits=Limits(check_seconds=0.05)), key=None) as client:
        answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()["code"]) == (503, "not_ready")
    assert (answer.json()["store"], answer.json()["queue"]) == ("unavailable", "ok")
    assert int(answer.headers["retry-after"]) > 0


async def test_judges_are_listed_with_what_they_can_say() -> None:
    async with client_of(an_api()) as client:
        body = (await client.get("/v1/judges")).json()
    [judge] = body["data"]
    assert (body["first_id"], body["last_id"], body["has_more"]) == ("soundness", "soundness", False)
    assert (judge["name"], judge["question"], judge["default"]) == ("soundness", JUDGES[0].question, True)
    assert judge["severities"] == {"orphan_output": "info", "duplicate_call_id": "low"}
    assert judge["reasons"] == {"no_calls": "There is no call."}
