"""The whole product as real processes on loopback: an API, workers, and a client over HTTP."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2

from tests.processes import free_port, python, wait_for_port

KEY = "fk_test_0123456789abcdef"
FORENSIC = "/v1/forensic-evaluations"


class Stack:
    """Processes that share a database, and perhaps a Redis and a judge endpoint."""

    def __init__(self, directory: Path, *, database_url: str | None, redis_url: str | None, **settings: str) -> None:
        self.directory = directory
        self.port = free_port()
        self.client = httpx2.Client(
            base_url=f"http://127.0.0.1:{self.port}", headers={"Authorization": f"Bearer {KEY}"}, timeout=120
        )
        values = {
            "data_dir": str(directory / "data"),
            "bootstrap_api_key": KEY,
            "secret_key": "a secret of this test, long enough",
            "log_level": "info",
            **settings,
        }
        if database_url is not None:
            values["database_url"] = database_url
        if redis_url is not None:
            values["redis_url"] = redis_url
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("FORENSIC_", "OPENAI_"))}
        self.env = {**clean, **{f"FORENSIC_{name.upper()}": value for name, value in values.items()}}
        self.workers: list[subprocess.Popen[bytes]] = []
        self._api: subprocess.Popen[bytes] | None = None

    def migrate(self) -> None:
        """Bring the database up to date."""
        self._run("migrate")

    def start_api(self) -> None:
        """Start the API and wait until it listens."""
        self._api = python(
            "uvicorn", "--factory", "app.main:create_app", "--port", str(self.port), "--log-level", "warning",
            env=self.env, log=self.directory / "api.log",
        )  # fmt: skip
        wait_for_port(self.port, 30)

    def start_worker(self, **settings: str) -> subprocess.Popen[bytes]:
        """Start a worker."""
        env = {**self.env, **{f"FORENSIC_{name.upper()}": value for name, value in settings.items()}}
        worker = python("app.worker", env=env, log=self.directory / f"worker-{len(self.workers)}.log")
        self.workers.append(worker)
        return worker

    @property
    def pids(self) -> list[int]:
        """The process ids of the API and the workers."""
        return [process.pid for process in [*([self._api] if self._api else []), *self.workers]]

    def stop(self) -> None:
        """End every process, the API gently so that it closes what it opened."""
        for process in [*self.workers, *([self._api] if self._api else [])]:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in [*self.workers, *([self._api] if self._api else [])]:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(15)
            process.kill()
            process.wait()
        self.client.close()

    def _run(self, *arguments: str) -> None:
        process = python("app.cli", *arguments, env=self.env, log=self.directory / "cli.log")
        if process.wait(60) != 0:
            raise RuntimeError((self.directory / "cli.log").read_text())

    def submit(self, body: bytes, **headers: str) -> httpx2.Response:
        """POST a body as it is."""
        return self.client.post(FORENSIC, content=body, headers={"Content-Type": "application/json", **headers})

    def wait(self, evaluation_id: str, seconds: float = 120) -> dict[str, Any]:
        """Return the evaluation once it has ended."""
        deadline = time.monotonic() + seconds
        while True:
            evaluation = self.get(f"{FORENSIC}/{evaluation_id}", wait="30")
            if evaluation["status"] in {"completed", "failed", "canceled"}:
                return evaluation
            if time.monotonic() > deadline:
                raise TimeoutError(f"{evaluation['progress']} after {seconds} s")

    def get(self, path: str, **query: str) -> dict[str, Any]:
        """GET an object."""
        answer = self.client.get(path, params=query)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def every(self, path: str, **query: str) -> list[dict[str, Any]]:
        """GET a whole list, page by page."""
        found: list[dict[str, Any]] = []
        after: dict[str, str] = {}
        while True:
            page = self.get(path, limit="100", **query, **after)
            found += page["data"]
            if not page["has_more"]:
                return found
            after = {"after": page["last_id"]}


@contextlib.contextmanager
def running(
    directory: Path, *, database_url: str | None, redis_url: str | None, workers: int = 1, **settings: str
) -> Iterator[Stack]:
    """Run a migrated stack for the length of a block."""
    stack = Stack(directory, database_url=database_url, redis_url=redis_url, **settings)
    try:
        stack.migrate()
        stack.start_api()
        for _ in range(workers):
            stack.start_worker()
        yield stack
    finally:
        stack.stop()
