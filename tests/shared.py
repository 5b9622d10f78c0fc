"""The recorded corpus lies beside the checkout on some machines; a clone has none, and its tests must pass there."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(os.environ.get("FORENSIC_TEST_SHARED", Path(__file__).resolve().parents[2] / "shared"))


def shared_path(name: str) -> Path:
    """Return a path in the corpus, or skip the test when it is not there."""
    path = ROOT / name
    if not path.exists():
        pytest.skip(f"the recorded corpus is not here ({name})")
    return path


def lines(name: str) -> list[Any]:
    """Return the decoded lines of a JSONL file of the corpus."""
    return list(_decoded(shared_path(name)))


def _decoded(path: Path) -> Iterator[Any]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)
