"""A real ``forensic serve`` for tests."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

FORENSIC = [sys.executable, "-m", "app.cli"]


class Serving:
    """A started ``forensic serve``, the URL and the key it told, and every process below it."""

    def __init__(self, folder: Path, command: list[str], settings: dict[str, str]) -> None:
        self.folder = folder
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("FORENSIC_", "OPENAI_"))}
        self.log = (folder / "log").open("wb")
        self.process = subprocess.Popen(
            [*command, "serve", "--port", "0"],
            cwd=folder,
            env=clean | settings,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )
        assert self.process.stdout is not None
        self.told = ""
        for line in self.process.stdout:
            self.told += line
            if " -d " in line:  # the last one
                break
        match = re.search(r"listens on (http://\S+)", self.told)
        if match is None:
            self.close()
            raise AssertionError((folder / "log").read_text())
        self.url = match[1]

    @property
    def key(self) -> str:
        return (self.folder / ".forensic" / "api-key").read_text().strip()

    def descendants(self) -> dict[int, str]:
        """Return the command lines of all processes below, by id."""
        parents: dict[int, int] = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                name_and_rest = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(stat.parent.name)] = int(name_and_rest[1])
        below: dict[int, str] = {}
        reached = {self.process.pid}
        while reached:
            reached = {pid for pid, parent in parents.items() if parent in reached}
            for pid in reached:
                line = Path(f"/proc/{pid}/cmdline")
                below[pid] = line.read_bytes().replace(b"\0", b" ").decode() if line.exists() else ""
        return below

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(20)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.log.close()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Serving]]:
    """Return what starts a service in an empty folder; it is ended after the test."""
    started: list[Serving] = []

    def start(command: list[str] = FORENSIC, **settings: str) -> Serving:
        started.append(Serving(tmp_path, command, settings))
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """Run one service for all tests that leave it as it is."""
    serving = Serving(tmp_path_factory.mktemp("served"), FORENSIC, {})
    yield serving
    serving.close()
