"""Steps over JSON punctuation, for readers that need to know where in the text a value stands.

The C decoder reads values; these steps lead from one to the next. Patterns give nothing back, so that no text makes
them slow.
"""

import re

_SPACE = re.compile(r"[ \t\n\r]*+")
_COLON = re.compile(r"[ \t\n\r]*+:[ \t\n\r]*+")
_AFTER = re.compile(r"[ \t\n\r]*+(?:(,)[ \t\n\r]*+|([\]}]))")


def skip_space(raw: str, at: int) -> int:
    """Return where the next token begins."""
    match = _SPACE.match(raw, at)
    return at if match is None else match.end()


def skip_colon(raw: str, at: int) -> int:
    """Return where the value begins, from the end of its key.

    Raises:
        ValueError: there is no colon.
    """
    match = _COLON.match(raw, at)
    if match is None:
        raise ValueError(f"expecting ':' at character {at}")
    return match.end()


def first_member(raw: str, at: int) -> tuple[int, bool]:
    """Return where a container's first member begins and True, or the container's end and False.

    ``at`` is where its opening bracket stands.
    """
    at = skip_space(raw, at + 1)
    empty = raw[at : at + 1] in ("]", "}")
    return at + empty, not empty


def next_member(raw: str, at: int, closing: str) -> tuple[int, bool]:
    """Return where the next member begins and True, or the container's end and False.

    ``at`` is the end of a member, ``closing`` the bracket that may end the container.

    Raises:
        ValueError: neither a comma nor that bracket follows.
    """
    match = _AFTER.match(raw, at)
    if match is None or match[2] not in (None, closing):
        raise ValueError(f"expecting ',' or '{closing}' at character {at}")
    return match.end(), match[2] is None
