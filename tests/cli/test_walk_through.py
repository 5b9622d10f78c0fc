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
EVALUATION = re.compile(r"feval_[0-9a-f]+")


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
    identity, script = "", ""
    for command, printed in STEPS:
        # A variable set in one step is there in the next.
        script += "\n".join(line for line in command.splitlines() if line.startswith("export ")) + "\n"
        wanted = EVALUATION.sub(identity, script + re.sub(r"^export .*$", "", command, flags=re.MULTILINE))
        wanted = wanted.replace("http://127.0.0.1:8000", served.url).replace(
            ".forensic/", f"{served.folder}/.forensic/"
        )
        done = subprocess.run(["bash", "-c", wanted], cwd=ROOT, capture_output=True, text=True, check=True)
        answer = json.loads(done.stdout)
        identity = identity or answer["id"]
        assert stable(answer) == stable(json.loads(printed))
