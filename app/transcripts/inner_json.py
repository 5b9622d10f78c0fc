"""Tools speak JSON inside strings: ``arguments`` and ``output``. What an agent wrote there may be anything.

Failure is a value here. An agent that writes broken arguments is a finding about the agent, never an error of ours.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from app.transcripts.model import Json
from app.transcripts.recording import StrictDecoder
from app.transcripts.text import replace_unstorable

MAX_DEPTH = 200
"""The same bound as for a request."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """What a string holds: a value, or the reason why it holds none."""

    value: Json = None
    error: str | None = None
    repeated_keys: tuple[str, ...] = ()
    """Of a repeated key the last value counts."""
    replaced: int = 0
    """NUL and lone surrogate escapes shown as U+FFFD."""


def decode(text: str) -> Decoded:
    """Decode a string that should hold JSON.

    NaN and Infinity are not JSON; integers over 4,300 digits and nesting over 200 are refused; a number beyond a
    double's range becomes the largest double. Never raises.
    """
    text, replaced = replace_unstorable(text)
    decoder = StrictDecoder()
    try:
        value = decoder.decode(text)
    except RecursionError:
        return Decoded(error=f"nested deeper than {MAX_DEPTH}")
    except ValueError as error:
        return Decoded(error=str(error).partition(";")[0][:_LONGEST_REASON])
    # Counting brackets is cheaper than walking, and clears nearly every text.
    if text.count("[") + text.count("{") > MAX_DEPTH and _deeper_than(value, MAX_DEPTH):
        return Decoded(error=f"nested deeper than {MAX_DEPTH}")
    return Decoded(value, None, tuple(decoder.repeated_keys), replaced)


_LONGEST_REASON = 200


def _deeper_than(value: Json, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        level = [child for container in level for child in _children(container) if isinstance(child, dict | list)]
        if not level:
            return False
    return True


def _children(container: Json) -> Iterable[Json]:
    return container.values() if isinstance(container, dict) else container
