"""A conversation's JSON text, decoded, with the place of every entry remembered.

The entries of ``items``, ``messages`` and ``tools`` are decoded one after the other instead of all at once, because
that tells where each begins in the text: what evidence needs to quote a place verbatim without reading 30 MB again.

What JSON allows and Python does not is settled here, once for every decoder: NaN and Infinity are not JSON; a number
beyond a double's range becomes the largest double, so that nothing downstream writes ``inf``; of a repeated key the
last value counts, and the repetition is reported.
"""

import json
import sys
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.transcripts.model import Json
from app.transcripts.scan import first_member, next_member, skip_colon, skip_space

ENTRY_LISTS = ("items", "messages", "tools")


class NotAdmittedError(ValueError):
    """What was handed over is not a conversation that the door would have let in."""


class StrictDecoder(json.JSONDecoder):
    """The standard decoder, held to the rules above. It collects repeated keys: make one for each text."""

    def __init__(self) -> None:
        self.repeated_keys: list[str] = []
        super().__init__(object_pairs_hook=self._object, parse_constant=_refuse, parse_float=_finite)

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) != len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    self.repeated_keys.append(key)
                seen.add(key)
        return value


@dataclass(frozen=True, slots=True)
class Recording:
    """A decoded conversation. ``starts`` says where the entries of each list begin in ``raw``."""

    raw: str
    document: Mapping[str, Json]
    starts: Mapping[str, Sequence[int]]
    repeated_keys: Sequence[str] = ()


def read(raw: str) -> Recording:
    """Decode a conversation whose NUL and lone surrogate escapes have been replaced.

    Raises:
        NotAdmittedError: ``raw`` is not a JSON object, or nests deeper than Python can follow.
    """
    decoder = StrictDecoder()
    try:
        document, starts = _document(raw, decoder)
    except RecursionError as error:
        raise NotAdmittedError("nested too deep") from error
    except ValueError as error:
        raise NotAdmittedError(f"not a JSON object: {error}") from error
    return Recording(raw, document, starts, decoder.repeated_keys)


def _document(raw: str, decoder: StrictDecoder) -> tuple[dict[str, Json], dict[str, Sequence[int]]]:
    document: dict[str, Json] = {}
    starts: dict[str, Sequence[int]] = {}
    at = skip_space(raw, 0)
    if raw[at : at + 1] != "{":
        raise ValueError("it does not begin with a brace")
    at, more = first_member(raw, at)
    while more:
        key, at = decoder.raw_decode(raw, at)
        if not isinstance(key, str):
            raise ValueError(f"a key is not a string at character {at}")  # noqa: TRY004 - malformed text, not a wrong argument
        at = skip_colon(raw, at)
        if key in document:
            decoder.repeated_keys.append(key)
        if key in ENTRY_LISTS and raw[at : at + 1] == "[":
            document[key], starts[key], at = _entries(raw, at, decoder)
        else:
            document[key], at = decoder.raw_decode(raw, at)
            starts.pop(key, None)
        at, more = next_member(raw, at, "}")
    if skip_space(raw, at) != len(raw):
        raise ValueError(f"something follows it at character {at}")
    return document, starts


def _entries(raw: str, at: int, decoder: StrictDecoder) -> tuple[list[Json], Sequence[int], int]:
    entries: list[Json] = []
    starts = array("Q")
    at, more = first_member(raw, at)
    while more:
        starts.append(at)
        entry, at = decoder.raw_decode(raw, at)
        entries.append(entry)
        at, more = next_member(raw, at, "]")
    return entries, starts, at


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    return max(-sys.float_info.max, min(value, sys.float_info.max))
