"""What a run left out is told, and fails it where it was required: CI rests on that."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SKIPS = """
import pytest

@pytest.mark.postgres
def test_one():
    pytest.skip("no PostgreSQL at localhost")

@pytest.mark.postgres
def test_two():
    pytest.skip("the recorded corpus is not here (x)")

def test_three():
    pass
"""
PASSES = "def test_all_is_there(): pass"


def run(folder: Path, tests: str, required: str) -> "subprocess.CompletedProcess[str]":
    (folder / "conftest.py").write_text((Path(__file__).parent / "conftest.py").read_text())
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n  postgres: needs it\n")
    (folder / "test_it.py").write_text(tests)
    environment = {**os.environ, "FORENSIC_TEST_REQUIRE": required}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("required", "code"), [("", 0), ("redis", 0), ("postgres", 1), ("postgres,redis", 1)])
def test_what_was_left_out_fails_the_run_only_where_required(tmp_path: Path, required: str, code: int) -> None:
    done = run(tmp_path, SKIPS, required)
    assert done.returncode == code, done.stdout
    assert "1 tests that need PostgreSQL" in done.stdout
    assert "1 tests that need the recorded corpus" in done.stdout
    assert ("REQUIRED, so this run failed: 1 tests that need PostgreSQL" in done.stdout) == bool(code)


def test_nothing_left_out_is_told_too(tmp_path: Path) -> None:
    done = run(tmp_path, PASSES, "postgres,redis")
    assert done.returncode == 0
    assert "nothing: PostgreSQL, Redis and the recorded corpus were all there" in done.stdout


def test_a_requirement_nobody_knows_is_refused(tmp_path: Path) -> None:
    assert run(tmp_path, PASSES, "postgers").returncode == pytest.ExitCode.USAGE_ERROR
