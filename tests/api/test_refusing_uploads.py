"""Ordinary clients hear why a large upload is refused, over real sockets."""

import http.client
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest

from app.api.collaborators import Limits
from tests.api.conftest import PATH, an_api
from tests.api.loopback import serving
from tests.api.stand_ins import KEY, RefusingIntake

LIMIT = 30 * 1024 * 1024
JSON = {"Content-Type": "application/json"}
MINE = {"Authorization": f"Bearer {KEY}", **JSON}


class Upload(NamedTuple):
    """A large body and what is wrong with it."""

    size: int
    headers: dict[str, str]
    status: int
    code: str


REFUSED = [
    pytest.param(Upload(LIMIT + 1, MINE, 422, "body_too_large"), id="one byte too long"),
    pytest.param(Upload(40_000_000, JSON, 401, "unauthenticated"), id="no key"),
    pytest.param(Upload(40_000_000, {**MINE, "Content-Encoding": "gzip"}, 415, "unsupported_media_type"), id="encoded"),
]


@pytest.fixture(scope="module")
def intake() -> RefusingIntake:
    return RefusingIntake()


@pytest.fixture(scope="module")
def spool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("spool")


@pytest.fixture(scope="module")
def port(intake: RefusingIntake, spool: Path) -> Iterator[int]:
    app = an_api(intake=intake, limits=Limits(receive_seconds=1.0), spool_dir=spool)
    with serving(app) as port:
        yield port


@pytest.fixture(scope="module")
def upload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file to send from; sparse, since only its length matters."""
    path = tmp_path_factory.mktemp("upload") / "body"
    with path.open("wb") as file:
        file.truncate(40_000_000)
    return path


def pieces(size: int) -> Iterator[bytes]:
    for start in range(0, size, 100_000):
        yield bytes(min(100_000, size - start))


@pytest.mark.parametrize("refused", REFUSED)
@pytest.mark.parametrize("chunked", [False, True])
def test_http_client(port: int, refused: Upload, chunked: bool) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    body: Any = pieces(refused.size) if chunked else bytes(refused.size)
    connection.request("POST", PATH, body, refused.headers, encode_chunked=chunked)
    answer = connection.getresponse()
    assert (answer.status, json.loads(answer.read())["code"]) == (refused.status, refused.code)
    connection.close()


@pytest.mark.parametrize("refused", REFUSED)
@pytest.mark.parametrize("chunked", [False, True])
def test_httpx2(port: int, refused: Upload, chunked: bool) -> None:
    content: Any = pieces(refused.size) if chunked else bytes(refused.size)
    answer = httpx2.post(f"http://127.0.0.1:{port}{PATH}", content=content, headers=refused.headers, timeout=30)
    assert (answer.status_code, answer.json()["code"]) == (refused.status, refused.code)


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl here")
@pytest.mark.parametrize("refused", REFUSED)
@pytest.mark.parametrize("extra", [["Expect:"], ["Expect: 100-continue"], ["Expect:", "Transfer-Encoding: chunked"]])
def test_curl(port: int, upload: Path, refused: Upload, extra: list[str]) -> None:
    lines = [*(f"{name}: {value}" for name, value in refused.headers.items()), *extra]
    options = [part for line in lines for part in ("-H", line)]
    with upload.open("r+b") as file:
        file.truncate(refused.size)
    done = subprocess.run(
        ["curl", "-sS", "-m", "30", "-w", "\n%{http_code} %{size_upload}", *options, "--data-binary", f"@{upload}",
         f"http://127.0.0.1:{port}{PATH}"],
        capture_output=True, check=True, text=True,
    )  # fmt: skip
    body, _, trailer = done.stdout.rpartition("\n")
    assert trailer.split()[0] == str(refused.status)
    assert json.loads(body)["code"] == refused.code
    if "Expect: 100-continue" in extra:
        assert trailer.split()[1] == "0", "a client that asks first need not send its body"


@pytest.mark.skipif(shutil.which("node") is None, reason="no node here")
@pytest.mark.parametrize("refused", REFUSED)
def test_fetch(port: int, refused: Upload) -> None:
    script = f"""
        const answer = await fetch("http://127.0.0.1:{port}{PATH}",
            {{method: "POST", headers: {json.dumps(refused.headers)}, body: new Uint8Array({refused.size})}});
        console.log(answer.status, (await answer.json()).code);
        process.exit();
    """
    done = subprocess.run(
        ["node", "--input-type=module", "-e", script], capture_output=True, check=True, text=True, timeout=30
    )
    assert done.stdout.split() == [str(refused.status), refused.code]


def test_the_longest_body_gets_through(port: int, intake: RefusingIntake, spool: Path) -> None:
    answer = httpx2.post(f"http://127.0.0.1:{port}{PATH}", content=bytes(LIMIT), headers=MINE, timeout=30)
    assert answer.json()["code"] == "invalid_request"
    assert intake.sizes[-1] == LIMIT
    assert list(spool.iterdir()) == []


def test_a_length_that_promises_too_much_is_answered_at_once(port: int) -> None:
    started = time.monotonic()
    with raw(port, f"Content-Length: {99 * 2**30}") as connection:
        connection.sendall(b"{}")
        assert b" 422 " in connection.recv(100)
    assert time.monotonic() - started < 5


def test_a_length_that_is_never_reached_ends_in_a_timeout(port: int, spool: Path) -> None:
    with raw(port, f"Content-Length: {LIMIT}") as connection:
        connection.sendall(bytes(1_000_000))
        assert b" 408 " in connection.recv(100)
    assert list(spool.iterdir()) == []


def test_a_client_that_goes_away_in_the_middle_leaves_nothing(port: int, intake: RefusingIntake, spool: Path) -> None:
    before = list(intake.sizes)
    with raw(port, f"Content-Length: {LIMIT}") as connection:
        connection.sendall(bytes(3_000_000))
        _until(lambda: any(spool.iterdir()))
    _until(lambda: not any(spool.iterdir()))
    assert intake.sizes == before


def test_the_connection_goes_on_after_an_ordinary_refusal(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    for _ in range(2):
        connection.request("POST", PATH, b"{}", MINE)
        answer = connection.getresponse()
        assert answer.read()
        assert answer.headers["connection"] is None
    connection.close()


def raw(port: int, framing: str) -> socket.socket:
    """Open a connection and send the head of a POST."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=10)
    lines = [f"POST {PATH} HTTP/1.1", "Host: x", *(f"{name}: {value}" for name, value in MINE.items()), framing]
    connection.sendall("\r\n".join([*lines, "", ""]).encode())
    return connection


def _until(true: Any) -> None:
    deadline = time.monotonic() + 5
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)
