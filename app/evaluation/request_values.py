"""The checks that every member of a request shares: type, size, closed sets; each names its place in words."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.transcripts.admission.wording import quoted, suggestion
from app.transcripts.model import Violation

MOST_COUNTED = 1000
"""Violations that are counted; with more, nobody is helped by the exact number."""

_MOST_SUGGESTIONS = 100


class EnoughError(Exception):
    """More than ``MOST_COUNTED`` violations were found in one member."""


@dataclass(frozen=True, slots=True)
class Place:
    """A value's place in the body, and the list that takes what is wrong with it."""

    loc: tuple[str | int, ...]
    found: list[Violation] = field(default_factory=list)

    def at(self, token: str | int) -> "Place":
        """Return the place of a member."""
        return Place((*self.loc, token), self.found)

    def refuse(self, code: str, message: str) -> None:
        """Note a violation; the message continues the place's name."""
        self.note(Violation(self.loc, code, f"{self} {message}"))

    def note(self, violation: Violation) -> None:
        """Note a violation.

        Raises:
            EnoughError: nobody wants to know of any more.
        """
        self.found.append(violation)
        if len(self.found) > MOST_COUNTED:
            raise EnoughError

    def suggestion(self, word: str, known: Iterable[str]) -> str:
        """Return what the client may have meant, as long as somebody is going to read it."""
        return suggestion(word, known) if len(self.found) < _MOST_SUGGESTIONS else ""

    def __str__(self) -> str:
        steps = (f"[{token}]" if isinstance(token, int) else f".{token}" for token in self.loc)
        return "".join(steps).removeprefix(".")


def text(place: Place, value: Any, *, longest: int, may_be_empty: bool = True) -> str | None:
    """Return a string, or None when it is none that fits."""
    if not isinstance(value, str):
        place.refuse("wrong_type", f"must be a string, not {kind_of(value)}")
    elif not value and not may_be_empty:
        place.refuse("empty", "must not be empty")
    elif len(value) > longest:
        place.refuse("too_long", f"has {len(value)} characters; at most {longest} are possible")
    else:
        return value
    return None


def whole(place: Place, value: Any, *, least: int, most: int) -> int | None:
    """Return an integer in a range, or None when it is none."""
    if isinstance(value, bool) or not isinstance(value, int):
        place.refuse("wrong_type", f"must be an integer, not {kind_of(value)}")
    elif not least <= value <= most:
        place.refuse("out_of_range", f"must be between {least} and {most}")
    else:
        return value
    return None


def array(place: Place, value: Any) -> Sequence[Any]:
    """Return an array, or an empty one when it is none."""
    if isinstance(value, list):
        return value
    place.refuse("wrong_type", f"must be an array, not {kind_of(value)}")
    return ()


def members(place: Place, value: Any, known: Collection[str], required: Collection[str] = ()) -> dict[str, Any]:
    """Return the members of an object that are there and not null; report unknown and missing ones."""
    if not isinstance(value, dict):
        place.refuse("wrong_type", f"must be an object, not {kind_of(value)}")
        return {}
    for key in value:
        if key not in known:
            refuse_unknown(place, key, known)
    for key in required:
        if value.get(key) is None:
            place.refuse("missing", f"needs {quoted(key)}")
    return {key: item for key, item in value.items() if key in known and item is not None}


def refuse_unknown(place: Place, key: str, known: Collection[str]) -> None:
    """Report a key that is not known here, most likely a typing error."""
    inside = f" in {place}" if place.loc else ""
    message = f"{quoted(key)} is not known{inside}{place.suggestion(key, known)}"
    place.note(Violation((*place.loc, key), "unknown_key", message))


def kind_of(value: Any) -> str:
    """Return the JSON type of a decoded value, with its article."""
    return "a number" if isinstance(value, int | float) and not isinstance(value, bool) else _KINDS[type(value)]


_KINDS = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}


def in_document_order(value: Any, found: Sequence[Violation]) -> list[Violation]:
    """Return violations in the order of their places in a decoded value; a container comes before its members."""
    positions: dict[int, dict[str, int]] = {}

    def place(violation: Violation) -> tuple[int, ...]:
        path: list[int] = []
        container = value
        for token in violation.loc:
            if isinstance(container, dict):
                if id(container) not in positions:
                    positions[id(container)] = {key: index for index, key in enumerate(container)}
                path.append(positions[id(container)][str(token)])
            else:
                path.append(int(token))
            container = container[token]
        return tuple(path)

    return sorted(found, key=place) if len(found) > 1 else list(found)
