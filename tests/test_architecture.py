"""The rules that are checks: layers, types and style, by the tools that know them, and a few of our own."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
LONGEST_MODULE = 300
DRAWERS = {"utils", "util", "helpers", "helper", "common", "manager", "service", "misc"}


def modules(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize(
    "command",
    [["lint-imports"], ["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]],
    ids=["imports only go down", "style", "format", "types"],
)
def test_a_tool_agrees(command: list[str]) -> None:
    program = BIN / command[0]
    done = subprocess.run([program, *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_only_settings_reads_the_environment() -> None:
    readers = [
        path.relative_to(ROOT) for path in modules("app") if re.search(r"\b(environ|getenv)\b", path.read_text())
    ]
    assert readers == [Path("app/settings.py")]


def test_modules_stay_small() -> None:
    sizes = {path.relative_to(ROOT): len(path.read_text().splitlines()) for path in modules("app", "migrations")}
    assert {path: size for path, size in sizes.items() if size > LONGEST_MODULE} == {}


def test_no_module_is_a_drawer() -> None:
    assert [path.relative_to(ROOT) for path in modules("app") if path.stem in DRAWERS] == []


def test_nothing_names_a_package_host() -> None:
    host = re.compile(r"(py" + r"pi|pythonhost" + r"ed|npm" + r"js)\.(org|com)")
    texts = [*modules("app", "tests", "benchmarks", "migrations"), *ROOT.glob("*.lock"), *ROOT.glob(".ci/*")]
    texts += [ROOT / name for name in ("pyproject.toml", "Makefile", "Dockerfile", "README.md", "docker-compose.yml")]
    assert [path.relative_to(ROOT) for path in texts if host.search(path.read_text("utf-8"))] == []
