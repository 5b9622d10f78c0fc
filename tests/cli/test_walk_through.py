"""README's walk-through is run as it is printed, and its answers are what the service answers."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Serving

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
SECTION = README.partition("<!-- walk-through -->")[2].partition("<!-- end of walk-through -->")[0]
STEPS = re.findall(r"^```sh\n(.*?)^```\n```json\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
CHANGING = re.compile(r"^((?:id|.*_id|request_id)|.*_at)$")
BETWEEN = "-- next --"


def stable(value: Any) -> Any:
    """Return an answer with ids and times, which differ from run to run, blotted out."""
    if isinstance(value, dict):
        return {
            name: "…"
            if CHANGING.match(name) and each is not None and name not in {"client_id", "call_id"}
            else stable(each)
            for name, each in value.items()
        }
    return [stable(each) for each in value] if isinstance(value, list) else value


def test_there_is_a_walk_through() -> None:
    assert len(STEPS) == 4
    assert "/findings" in STEPS[2][0]


@pytest.mark.skipif(shutil.which("curl") is None, reason="the walk-through uses curl")
def test_the_walk_through_is_real(served: Serving) -> None:
    # One shell runs all steps, as one in which they are pasted: a variable set in one is there in the next.
    script = f"\necho; echo '{BETWEEN}'\n".join(command for command, _ in STEPS)
    script = script.replace("http://127.0.0.1:8000", served.url).replace(".forensic/", f"{served.folder}/.forensic/")
    done = subprocess.run(["bash", "-ec", script], cwd=ROOT, capture_output=True, text=True, check=True)
    answers = [json.loads(answer) for answer in done.stdout.split(BETWEEN)]
    assert [stable(answer) for answer in answers] == [stable(json.loads(printed)) for _, printed in STEPS]
