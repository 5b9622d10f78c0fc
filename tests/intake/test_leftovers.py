import os
import time
from pathlib import Path

from app.intake.leftovers import sweep


def test_only_what_was_abandoned_is_removed(tmp_path: Path) -> None:
    names = ("forensic-body-old", "forensic-rows-old", "forensic-body-new", "somebody-elses")
    for name in names:
        (tmp_path / name).write_text("transcript")
        if not name.endswith("new"):
            os.utime(tmp_path / name, (time.time() - 7200,) * 2)
    sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["forensic-body-new", "somebody-elses"]
