import asyncio
from collections.abc import Iterator

import pytest

from app.judges.contract import Bench
from app.sandbox.checker import SandboxChecker


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    """What the code judges need: the real checker, in its real sandbox."""
    checker = SandboxChecker()
    yield Bench(checker)
    asyncio.run(checker.aclose())
