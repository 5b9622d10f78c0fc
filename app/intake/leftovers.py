"""What a killed process left among the temporary files: parts of transcripts that nobody else would remove."""

import contextlib
import tempfile
import time
from pathlib import Path

_PREFIXES = ("forensic-body-", "forensic-rows-")
_ABANDONED_SECONDS = 3600.0
"""Far longer than a request may take."""


def sweep(directory: Path | None = None) -> None:
    """Remove abandoned files of requests."""
    latest = time.time() - _ABANDONED_SECONDS
    for path in (directory or Path(tempfile.gettempdir())).iterdir():
        if path.name.startswith(_PREFIXES):
            with contextlib.suppress(OSError):  # another process was quicker, or it is not ours
                if path.stat().st_mtime < latest:
                    path.unlink()
