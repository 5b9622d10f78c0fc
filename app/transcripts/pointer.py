"""RFC 6901 pointers, the one way in which places inside a conversation are named."""

import re
from collections.abc import Iterable

_INDEX = re.compile(r"0|[1-9][0-9]{0,17}")


def build(tokens: Iterable[str | int]) -> str:
    """Return the pointer that leads through ``tokens``; the whole value's is empty."""
    return "".join(f"/{_escape(token) if isinstance(token, str) else token}" for token in tokens)


def split(pointer: str) -> tuple[str, ...]:
    """Return the unescaped tokens of ``pointer``.

    Raises:
        ValueError: ``pointer`` is neither empty nor begins with a slash.
    """
    if not pointer:
        return ()
    if not pointer.startswith("/"):
        raise ValueError(f"not a JSON pointer: {pointer[:80]!r}")
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in pointer[1:].split("/"))


def position(token: str) -> int | None:
    """Return the array index that ``token`` names, or None; an index has no sign and no leading zero."""
    return int(token) if _INDEX.fullmatch(token) else None


def _escape(token: str) -> str:
    if "~" not in token and "/" not in token:
        return token
    return token.replace("~", "~0").replace("/", "~1")
