"""Bodies: counted, hashed, bounded in bytes and time, and gone afterwards."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.api.collaborators import Limits
from tests.api.conftest import PATH, an_api, client_of
from tests.api.exchange import exchange
from tests.api.stand_ins import KEY, RefusingIntake

SMALL = Limits(body_bytes=4000, memory_bytes=1000, receive_seconds=0.2)
JSON = {"content-type": "application/json"}


async def post(app: Any, content: Any, headers: Any = JSON, key: str | None = KEY) -> httpx2.Response:
    async with client_of(app, key) as client:
        return await client.post(PATH, content=content, headers=headers)


async def test_the_longest_body_is_received_and_one_byte_more_is_refused(tmp_path: Path) -> None:
    intake = RefusingIntake()
    app = an_api(intake=intake, limits=SMALL, spool_dir=tmp_path)
    assert (await post(app, b"x" * 4000)).json()["code"] == "invalid_request"
    answer = await post(app, b"x" * 4001)
    assert answer.status_code == 422
    assert answer.json()["code"] == "body_too_large"
    assert [error["code"] for error in answer.json()["errors"]] == ["body_too_large"]
    assert intake.sizes == [4000]
    assert left_in(tmp_path) == []


async def test_a_body_without_a_length_is_counted(tmp_path: Path) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(5):
            yield b"x" * 1000

    app = an_api(limits=SMALL, spool_dir=tmp_path)
    assert (await post(app, chunks())).json()["code"] == "body_too_large"
    assert left_in(tmp_path) == []


async def test_small_bodies_stay_in_memory_and_large_ones_lie_in_a_file_for_as_long_as_they_are_needed(
    tmp_path: Path,
) -> None:
    intake = RefusingIntake()
    app = an_api(intake=intake, limits=SMALL, spool_dir=tmp_path)
    await post(app, b"x" * 1000)
    assert intake.paths == []
    await post(app, b"x" * 1001)
    assert [Path(path).parent for path in intake.paths] == [tmp_path]
    assert left_in(tmp_path) == []


@settings(deadline=None, max_examples=60)
@given(st.lists(st.binary(max_size=900), max_size=8))
def test_however_a_body_is_cut_the_intake_gets_all_of_it_and_its_hash(chunks: list[bytes]) -> None:
    intake = RefusingIntake()  # compares size and hash with the bytes themselves

    async def send() -> httpx2.Response:
        async def stream() -> AsyncIterator[bytes]:
            for chunk in chunks:
                yield chunk

        limits = Limits(body_bytes=10_000, memory_bytes=1000)
        return await post(an_api(intake=intake, limits=limits), stream())

    assert asyncio.run(send()).status_code == 422
    assert intake.sizes == [sum(map(len, chunks))]


async def test_a_client_that_goes_away_leaves_nothing(tmp_path: Path) -> None:
    intake = RefusingIntake()
    app = an_api(intake=intake, limits=SMALL, spool_dir=tmp_path)
    sent = await exchange(
        app,
        [
            {"type": "http.request", "body": b"x" * 2000, "more_body": True},
            {"type": "http.request", "body": b"x" * 1000, "more_body": True},
            {"type": "http.disconnect"},
        ],
    )
    assert sent == []
    assert intake.sizes == []
    assert left_in(tmp_path) == []


async def test_a_body_that_takes_too_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.api.lingering.LONGEST_SECONDS", 0.05)
    app = an_api(limits=SMALL, spool_dir=tmp_path)
    sent = await exchange(app, [{"type": "http.request", "body": b"x" * 2000, "more_body": True}])
    assert sent[0]["status"] == 408
    assert (b"connection", b"close") in sent[0]["headers"]
    assert left_in(tmp_path) == []


async def test_without_room_for_a_body_the_client_is_asked_to_come_back(tmp_path: Path) -> None:
    answer = await post(an_api(limits=SMALL, spool_dir=tmp_path / "gone"), b"x" * 2000)
    assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
    assert int(answer.headers["retry-after"]) > 0


async def test_one_huge_piece_does_not_stall_the_loop() -> None:
    gaps: list[float] = []

    async def beat() -> None:
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(0.002)
            gaps.append(loop.time() - before)

    class Looking(RefusingIntake):
        """Looks at nothing, so that only the receiving is measured."""

        def admit(self, body: Any, rules: Any) -> Any:
            beating.cancel()
            return super().admit(body, rules)

    beating = asyncio.ensure_future(beat())
    await post(an_api(intake=Looking()), b"x" * (30 * 1024 * 1024))
    assert max(gaps[1:]) < 0.1


@pytest.mark.parametrize(
    "media_type",
    [
        "application/json",
        "application/json; charset=utf-8",
        'Application/JSON;charset="UTF-8"',
        "application/vnd.acme+json",
    ],
)
async def test_json_by_any_name_is_taken(media_type: str) -> None:
    answer = await post(an_api(), b"{}", {"content-type": media_type, "content-encoding": "identity"})
    assert answer.json()["code"] == "invalid_request"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-type": "text/plain"},
        {"content-type": "application/x-ndjson"},
        {"content-type": "text/x+json"},
        {"content-type": "application/json; charset=utf-16"},
        {"content-type": "multipart/form-data; boundary=x"},
        {"content-type": "application/json", "content-encoding": "gzip"},
        {"content-type": "application/json", "content-encoding": "identity, br"},
    ],
)
async def test_anything_else_is_refused_unread(headers: dict[str, str]) -> None:
    intake = RefusingIntake()
    answer = await post(an_api(intake=intake), b"{}", headers)
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")
    assert intake.sizes == []


@pytest.mark.parametrize(("name", "second"), [("content-encoding", "gzip"), ("content-type", "text/plain")])
async def test_a_second_line_of_a_header_does_not_hide(name: str, second: str) -> None:
    first = {"content-encoding": "identity", "content-type": "application/json"}
    headers = [*((key.encode(), value.encode()) for key, value in first.items()), (name.encode(), second.encode())]
    answer = await post(an_api(), b"{}", headers)
    assert answer.status_code == 415


@pytest.mark.parametrize("key", ["", "x" * 256, "tab\there", "caf\xe9"])
async def test_an_idempotency_key_has_1_to_255_printable_characters(key: str) -> None:
    headers = [(b"content-type", b"application/json"), (b"idempotency-key", key.encode("latin-1"))]
    answer = await post(an_api(), b"{}", headers)
    assert answer.status_code == 422
    [error] = answer.json()["errors"]
    assert (error["code"], error["parameter"]) == ("invalid_header", "Idempotency-Key")


async def test_several_idempotency_keys_are_none() -> None:
    headers = [(b"content-type", b"application/json"), (b"idempotency-key", b"a"), (b"idempotency-key", b"b")]
    assert (await post(an_api(), b"{}", headers)).json()["code"] == "invalid_parameter"


async def test_who_is_nobody_is_told_so_before_anything_is_read() -> None:
    log: list[str] = []
    body = {"type": "http.request", "body": b"x" * 2000, "more_body": True}
    sent = await exchange(an_api(), [body, {"type": "http.disconnect"}], key="wrong", log=log)
    assert sent[0]["status"] == 401
    assert log[:3] == ["http.response.start", "http.response.body", "http.request"]


def left_in(directory: Path) -> list[Path]:
    return list(directory.iterdir())
