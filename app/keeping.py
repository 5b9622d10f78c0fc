"""Keeps secrets that the service makes for itself, in files that only their owner can read.

Several processes start at once and have to agree on one secret without talking to each other.
"""

import os
import secrets
from contextlib import suppress
from pathlib import Path


def kept_secret(path: Path, prefix: str) -> str:
    """Read a secret from a file, making it if need be. Processes that race agree on one.

    Raises:
        OSError: it cannot be read or made.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        return path.read_text("ascii").strip()
    made = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    made.touch(mode=0o600)
    made.write_text(prefix + secrets.token_urlsafe(32) + "\n", "ascii")
    try:
        # A link appears complete and never replaces another: whoever comes second reads the first one's secret.
        with suppress(FileExistsError):
            path.hardlink_to(made)
    finally:
        made.unlink()
    return path.read_text("ascii").strip()
