"""``forensic serve`` and ``forensic demo`` as a user runs them: real processes, and none of them left behind."""

import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path

import httpx2
import pytest

from app.cli.private_redis import find_redis_server
from tests.cli.conftest import FORENSIC, Serving

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
WITHOUT_REDIS = [
    sys.executable,
    "-c",
    "import app.cli.stack as stack; stack.find_redis_server = lambda: None; from app.cli.main import main; main()",
]
CHAT = '{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]}\n'
Serve = Callable[..., Serving]


def gone(pids: Collection[int]) -> bool:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if not any(Path(f"/proc/{pid}").exists() for pid in pids):
            return True
        time.sleep(0.05)
    return False


def free(url: str) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", int(url.rpartition(":")[2]))) != 0


def submit(serving: Serving, text: str = CHAT) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "FORENSIC_URL": serving.url, "FORENSIC_API_KEY": serving.key}
    command = [*FORENSIC, "submit", "-", "--json"]
    return subprocess.run(command, input=text, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_it_tells_how_to_use_it(served: Serving) -> None:
    assert served.key in served.told
    assert "no judge model configured: model judges answer not_scored" in served.told
    assert str(served.folder / ".forensic") in served.told
    assert stat.S_IMODE((served.folder / ".forensic" / "api-key").stat().st_mode) == 0o600
    assert httpx2.get(f"{served.url}/readyz").status_code == 200
    has_redis = any("redis-server" in line for line in served.descendants().values())
    assert has_redis == (find_redis_server() is not None)


def test_it_tells_whom_it_depends_on(serve: Serve) -> None:
    endpoint = "http://127.0.0.1:9/v1"
    serving = serve(
        FORENSIC_REDIS_URL="redis://:a-password@127.0.0.1:1",
        FORENSIC_JUDGE_MODEL="large",
        FORENSIC_JUDGE_BASE_URL=endpoint,
        FORENSIC_PROT="1",
    )
    assert f"ask large at {endpoint}" in serving.told
    assert "does not answer now" in serving.told
    assert "no worker was started here" in serving.told
    assert "a-password" not in serving.told
    assert "did you mean FORENSIC_PORT?" in (serving.folder / "log").read_text()


@pytest.mark.skipif(shutil.which("curl") is None, reason="runs the curl line")
def test_the_curl_line_works_as_it_is_printed(served: Serving) -> None:
    command = served.told.partition("Try it:")[2]
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["object"] == "forensic_evaluation"


def test_what_it_accepts_is_judged(served: Serving) -> None:
    done = submit(served)
    evaluation = json.loads(done.stdout)
    assert evaluation["status"] == "completed"
    assert evaluation["verdicts"]["not_scored"] > 0
    assert done.returncode == 3


def test_ctrl_c_ends_it_and_the_next_start_finds_what_it_kept(serve: Serve) -> None:
    first = serve()
    identity = json.loads(submit(first).stdout)["id"]
    below = first.descendants()
    first.process.send_signal(signal.SIGINT)
    assert first.process.wait(30) == 0
    assert gone(below)
    assert free(first.url)
    key = "a-key-of-my-own-choice"
    second = serve(FORENSIC_BOOTSTRAP_API_KEY=key)
    assert key not in second.told
    # A key given anew takes the place of the one that was made.
    for each, status in ((key, 200), (first.key, 401)):
        headers = {"Authorization": f"Bearer {each}"}
        assert httpx2.get(f"{second.url}/v1/forensic-evaluations/{identity}", headers=headers).status_code == status


def test_a_server_that_ends_by_itself_is_an_error(tmp_path: Path) -> None:
    program = (
        "import asyncio, app.cli.stack as stack\n"
        "async def soon(self): await asyncio.sleep(0.2)\n"
        "stack.Server.main_loop = soon\n"
        "from app.cli.main import main; main()"
    )
    command = [sys.executable, "-c", program, "serve", "--port", "0"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr.endswith("the server ended by itself; its log says why\n")


def test_what_is_kept_is_for_its_owner_alone(served: Serving) -> None:
    folder = served.folder / ".forensic"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()} == {0o600}


@pytest.mark.parametrize("command", [["serve", "--port", "0"], ["worker"], ["migrate"]])
@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("FORENSIC_DATABASE_URL", "postgresql://u:a-password@127.0.0.1:1/x"),
        ("FORENSIC_DATABASE_URL", "postgresql://u:a-password@127.0.0.1:many/x"),
        ("FORENSIC_DATABASE_URL", "sqlite:////proc/none/x"),
        ("FORENSIC_DATA_DIR", "/proc/none"),
    ],
)
def test_a_place_that_cannot_be_used_is_told_in_a_line(
    tmp_path: Path, command: list[str], variable: str, value: str
) -> None:
    settings = {"FORENSIC_SECRET_KEY": "s" * 16, "FORENSIC_REDIS_URL": "redis://127.0.0.1:1", variable: value}
    done = subprocess.run(
        [*FORENSIC, *command],
        cwd=tmp_path,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"{variable}: ")
    assert "a-password" not in done.stderr


def test_an_address_of_another_machine_is_told(tmp_path: Path) -> None:
    command = [*FORENSIC, "serve", "--host", "203.0.113.7", "--port", "0"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("FORENSIC_HOST")


def test_a_dead_worker_is_replaced_and_a_killed_service_takes_everything_along(serve: Serve) -> None:
    if find_redis_server() is None:
        pytest.skip("no redis-server here")
    serving = serve()
    (worker,) = [pid for pid, line in serving.descendants().items() if "-m app.worker" in line]
    os.kill(worker, signal.SIGKILL)
    done = submit(serving)
    assert json.loads(done.stdout)["status"] == "completed"
    below = serving.descendants()
    assert worker not in below
    assert len(below) >= 2
    serving.process.kill()
    serving.process.wait()
    assert gone(below)
    assert free(serving.url)


def test_without_any_redis_the_api_judges_and_says_so(serve: Serve) -> None:
    serving = serve(WITHOUT_REDIS)
    assert "no redis-server found" in serving.told
    assert json.loads(submit(serving).stdout)["status"] == "completed"


def test_a_taken_port_is_told_before_anything_starts(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [*FORENSIC, "serve", "--port", port], cwd=tmp_path, capture_output=True, text=True, check=False
        )
    assert done.returncode == 2
    assert done.stderr.startswith(f"Port {port} on 127.0.0.1 is in use.")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [["serve"], ["worker"], ["migrate"]])
def test_a_bad_setting_is_told_in_a_line(tmp_path: Path, command: list[str]) -> None:
    done = subprocess.run(
        [*FORENSIC, *command],
        cwd=tmp_path,
        env={**os.environ, "FORENSIC_LEASE_SECONDS": "soon"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("FORENSIC_LEASE_SECONDS: ")


def test_the_demo_shows_what_was_found_and_leaves_nothing(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PYTHONIOENCODING": "ascii",
        "TMPDIR": str(tmp_path),
        "FORENSIC_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing",
        "FORENSIC_PORT": "nonsense",
    }
    started = time.monotonic()
    done = subprocess.run(
        [*FORENSIC, "demo"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - started < 60
    assert list(tmp_path.iterdir()) == []
    shown = done.stdout
    assert max(len(re.sub(r"\\u[0-9a-f]{4}", "x", line)) for line in shown.splitlines()) <= 80
    assert "\x1b" not in shown
    for planted in ("bike-repair", "bakery", "ferry", "greenhouse", "heating"):
        assert planted in shown
    assert "no_judge_model" in shown
    assert "Nothing found: museum" in shown
    assert "Nothing scored, so nothing known: library" in shown
    assert "No judge model is configured" in " ".join(shown.split())


def test_the_version_is_the_one_of_the_project() -> None:
    done = subprocess.run([*FORENSIC, "--version"], capture_output=True, text=True, check=True)
    assert f'version = "{done.stdout.split()[1]}"' in (ROOT / "pyproject.toml").read_text()
