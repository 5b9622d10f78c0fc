import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.sandbox.checker import SandboxChecker
from app.sandbox.lanes import Sandbox


@pytest.fixture
async def checker() -> AsyncIterator[SandboxChecker]:
    """The real checker with little patience, so that hostile cases do not take seconds each."""
    checker = SandboxChecker(Sandbox(quick_seconds=0.1, slow_seconds=0.3))
    yield checker
    await checker.aclose()


def children() -> set[int]:
    """Return the pids of this process's children, dead ones that nobody waited for included."""
    tasks = Path(f"/proc/{os.getpid()}/task")
    if not tasks.exists():
        pytest.skip("needs /proc")
    return {int(pid) for path in tasks.glob("*/children") for pid in path.read_text().split()}
