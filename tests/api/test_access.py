"""Who may do what: every route asks for a key before it looks at anything, and shows nothing of others."""

from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from starlette.routing import Route

from app.api.application import ROUTES
from app.api.routes.about import PUBLIC
from app.pipeline.access import key_sha256
from app.storage.store import DatabaseStore
from tests.api.conftest import PATH, an_api, client_of, submitted, talk
from tests.api.stand_ins import AwayStore

NOBODY_S_ID = "feval_" + "0" * 32
EVERY = sorted(
    (method, route.path_format)
    for route in ROUTES
    if isinstance(route, Route)
    for method in route.methods or ()
    if route.path not in PUBLIC
)
OF_ONE = [each for each in EVERY if "{evaluation_id}" in each[1]]
WRITES = {"POST", "DELETE"}


def filled(path: str, evaluation_id: str = NOBODY_S_ID) -> str:
    return path.replace("{evaluation_id}", evaluation_id).replace("{index}", "0")


async def add_key(store: DatabaseStore, key: str, workspace: str, *scopes: str) -> None:
    async with store.begin() as tx:
        await tx.ensure_key(key_sha256(key), name=key, workspace_id=workspace, scopes=scopes)


def test_all_routes_are_known_here() -> None:
    assert len(EVERY) >= 14
    assert {path for _, path in EVERY} >= {PATH, f"{PATH}/{{evaluation_id}}/export", "/v1/judges"}


@pytest.mark.parametrize(("method", "path"), EVERY)
@pytest.mark.parametrize(
    "headers",
    [{}, {"authorization": "Bearer wrong"}, {"authorization": "Basic d3Jvbmc6a2V5"}, {"authorization": "Bearer"}],
)
async def test_nobody_gets_anywhere(method: str, path: str, headers: dict[str, str]) -> None:
    async with client_of(an_api(), key=None) as client:
        answer = await client.request(method, filled(path), headers=headers, params={"no": "such"})
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("path", sorted(PUBLIC))
async def test_health_and_description_need_no_key(path: str) -> None:
    async with client_of(an_api(), key=None) as client:
        assert (await client.get(path)).status_code == 200


@pytest.mark.parametrize(("method", "path"), OF_ONE)
async def test_what_is_not_there_is_not_found(client: httpx2.AsyncClient, method: str, path: str) -> None:
    for wrong in (NOBODY_S_ID, "feval_1", "%00", "feval_" + "0" * 32 + "%0a", "conv_" + "0" * 32):
        answer = await client.request(method, filled(path, wrong))
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), wrong


@pytest.mark.parametrize(("method", "path"), OF_ONE)
async def test_what_belongs_to_others_is_not_found(
    store: DatabaseStore, app: FastAPI, client: httpx2.AsyncClient, method: str, path: str
) -> None:
    evaluation = await submitted(client)
    await add_key(store, "somebody else's key", "ws_other", "admin")
    async with client_of(app, "somebody else's key") as other:
        answer = await other.request(method, filled(path, evaluation["id"]))
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        assert (await other.get(PATH)).json()["data"] == []
        cursor = await other.get(PATH, params={"after": evaluation["id"]})
        assert (cursor.status_code, cursor.json()["errors"][0]["code"]) == (422, "invalid_cursor")
    assert (await client.get(f"{PATH}/{evaluation['id']}")).json() == evaluation


@pytest.mark.parametrize(("method", "path"), EVERY)
async def test_reading_keys_do_not_write_and_submitting_keys_do_not_read(
    store: DatabaseStore, app: FastAPI, method: str, path: str
) -> None:
    await add_key(store, "a reading key", "ws_default", "read")
    await add_key(store, "a submitting key", "ws_default", "submit")
    statuses = {}
    for key in ("a reading key", "a submitting key"):
        async with client_of(app, key) as client:
            statuses[key] = (await client.request(method, filled(path))).status_code
    if path == "/v1/judges":
        assert set(statuses.values()) == {200}
    else:
        refused, let_in = statuses.values() if method in WRITES else reversed(list(statuses.values()))
        assert refused == 403
        assert let_in != 403


async def test_a_key_without_a_known_scope_gets_nowhere(store: DatabaseStore, app: FastAPI) -> None:
    await add_key(store, "a useless key", "ws_default", "other")
    async with client_of(app, "a useless key") as client:
        for method, path in EVERY:
            answer = await client.request(method, filled(path))
            assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope")


async def test_with_the_database_away_nobody_is_turned_away_for_good() -> None:
    async with client_of(an_api(AwayStore())) as client:
        for method, path in EVERY:
            answer = await client.request(method, filled(path))
            assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
            assert int(answer.headers["retry-after"]) > 0


async def test_two_workspaces_may_use_the_same_idempotency_key(
    store: DatabaseStore, app: FastAPI, client: httpx2.AsyncClient
) -> None:
    await add_key(store, "somebody else's key", "ws_other", "admin")
    body: dict[str, Any] = {"conversations": [talk()]}
    async with client_of(app, "somebody else's key") as other:
        answers = [await each.post(PATH, json=body, headers={"idempotency-key": "k"}) for each in (client, other)]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert len({answer.json()["id"] for answer in answers}) == 2
