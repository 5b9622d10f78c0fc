"""What every answer carries, and what no answer says."""

import json
import logging
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.problems import KINDS, LARGEST, printable, problem
from app.pipeline.errors import BusyError, Problem
from tests.api.conftest import PATH, an_api, client_of
from tests.api.contract import validator
from tests.api.stand_ins import RefusingIntake

JSON = {"content-type": "application/json"}


class Breaking(RefusingIntake):
    """Fails with whatever it is given."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def admit(self, body: Any, rules: Any) -> Any:
        raise self.error


@pytest.mark.parametrize("given_id", ["abc", "A-b_9", "x" * 64])
async def test_a_request_id_of_the_client_is_kept(given_id: str) -> None:
    async with client_of(an_api()) as client:
        answer = await client.get("/v1/nothing", headers={"x-request-id": given_id})
    assert answer.headers["x-request-id"] == answer.json()["request_id"] == given_id


@pytest.mark.parametrize("given_id", ["", "x" * 65, "a b", 'a"b', "caf\xe9", "\u0661".encode().decode("latin-1")])
async def test_a_request_id_that_could_forge_something_is_replaced(given_id: str) -> None:
    async with client_of(an_api()) as client:
        answer = await client.get("/healthz", headers=[(b"x-request-id", given_id.encode("latin-1"))])
    assert answer.headers["x-request-id"] != given_id
    assert answer.headers["x-request-id"].startswith("req_")


async def test_answers_are_not_sniffed_framed_or_cached() -> None:
    async with client_of(an_api()) as client:
        for path in ("/healthz", "/v1/judges", "/nowhere"):
            headers = (await client.get(path)).headers
            assert headers["x-content-type-options"] == "nosniff"
            assert "default-src 'none'" in headers["content-security-policy"]
            assert headers["cache-control"] == "no-store"


async def test_a_fault_of_ours_says_nothing_but_its_id(caplog: pytest.LogCaptureFixture) -> None:
    async with client_of(an_api(intake=Breaking(RuntimeError("the secret of the house")))) as client:
        answer = await client.post(PATH, content=b"{}", headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")
    assert "secret" not in answer.text
    [record] = [each for each in caplog.records if each.levelno >= logging.ERROR]
    assert vars(record)["request_id"] == answer.json()["request_id"]
    assert "the secret of the house" in (record.exc_text or "")


async def test_too_much_at_once_is_asked_to_wait() -> None:
    async with client_of(an_api(intake=Breaking(BusyError(7)))) as client:
        answer = await client.post(PATH, content=b"{}", headers=JSON)
    assert (answer.status_code, answer.json()["code"], answer.headers["retry-after"]) == (503, "busy", "7")


@pytest.mark.parametrize("path", ["/", "/v1", "/v2/forensic-evaluations", f"{PATH}/", "/docs", "/redoc"])
async def test_there_is_nothing_else(path: str) -> None:
    async with client_of(an_api()) as client:
        answer = await client.get(path)
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_a_wrong_method_hears_of_all_right_ones() -> None:
    async with client_of(an_api()) as client:
        assert (await client.put(PATH)).headers["allow"] == "GET, POST"
        assert (await client.patch(f"{PATH}/feval_{'0' * 32}")).headers["allow"] == "DELETE, GET"
        answer = await client.get(f"{PATH}/feval_{'0' * 32}/cancel")
    assert (answer.status_code, answer.json()["code"], answer.headers["allow"]) == (405, "method_not_allowed", "POST")


async def refused(problems: list[Problem], count: int | None) -> httpx2.Response:
    async with client_of(an_api(intake=RefusingIntake(problems, count))) as client:
        return await client.post(PATH, content=b"{}", headers=JSON)


async def test_problems_come_in_order_with_their_places() -> None:
    answer = await refused(
        [
            Problem("/conversations/0/messages/1/role", "role_not_allowed", "no tool here", 0),
            Problem("/nam", "unknown_key", "y"),
        ],
        2,
    )
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["errors"] == [
        {
            "pointer": "/conversations/0/messages/1/role",
            "code": "role_not_allowed",
            "message": "no tool here",
            "conversation": 0,
        },
        {"pointer": "/nam", "code": "unknown_key", "message": "y", "conversation": None},
    ]
    assert (answer.json()["error_count"], answer.json()["truncated"]) == (2, False)


async def test_a_body_that_is_not_json_is_shown_line_and_column() -> None:
    answer = await refused([Problem("", "json_invalid", "expected a comma", None, 3, 14)], 1)
    [error] = answer.json()["errors"]
    assert (error["pointer"], error["line"], error["column"]) == ("", 3, 14)


@pytest.mark.parametrize(("given_", "count", "listed", "truncated"), [(250, 250, 100, True), (100, None, 100, True)])
async def test_at_most_a_hundred_are_listed_and_all_are_counted(
    given_: int, count: int | None, listed: int, truncated: bool
) -> None:
    answer = await refused([Problem(f"/conversations/{n}", "empty", "m", n) for n in range(given_)], count)
    body = answer.json()
    assert (len(body["errors"]), body["error_count"], body["truncated"]) == (listed, count, truncated)


@given(
    st.lists(
        st.builds(
            Problem, st.text(max_size=3000).map(lambda text: "/" + text), st.just("empty"), st.text(max_size=400)
        ),
        max_size=120,
    )
)
def test_a_refusal_is_small_and_sound_whatever_it_quotes(problems: list[Problem]) -> None:
    _is_small_and_sound(problems)


def test_a_refusal_of_the_worst_kind_is_small() -> None:
    _is_small_and_sound([Problem("/\x00\ud800" * 2000, "empty", '\x00\ud800"' * 200) for _ in range(100)])


def _is_small_and_sound(problems: list[Problem]) -> None:
    answer = problem("req_1", "invalid_request", "no", items=problems, count=len(problems))
    assert len(answer.body) <= LARGEST
    body = json.loads(bytes(answer.body))
    validator("InvalidRequest").validate(body)
    for error in body["errors"]:
        assert error["pointer"] == "" or error["pointer"].startswith("/")
        assert printable(error["message"]) == error["message"]


def test_every_kind_of_problem_has_a_status_of_its_own_class() -> None:
    assert {kind.status for kind in KINDS.values()} <= {400, 401, 403, 404, 405, 408, 409, 415, 422, 500, 503}
