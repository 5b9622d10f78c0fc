"""What came back from a tool, from wherever an item type keeps it, and whether the record says that it failed.

*Available* means that the recording holds a result, were it an empty one. Hosted tools usually record none: their
usefulness then cannot be assessed, which is not the same as a bad result.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from app.transcripts.content import are_parts, parts, shown
from app.transcripts.entry import Entry
from app.transcripts.inner_json import decode
from app.transcripts.model import Json, Segment
from app.transcripts.notes import Notes
from app.transcripts.outcome import stated_failure, suspected_failure


@dataclass(frozen=True, slots=True)
class Output:
    """The result of one call; ``text`` is what a reader sees of it."""

    value: Json = None
    pointer: str = ""
    available: bool = False
    error: str | None = None
    """What went wrong, where the record says that the call failed."""
    suspicion: str | None = None
    """What makes the result read like an error, where the record does not say so."""
    denied: bool = False
    text: str = ""
    segments: tuple[Segment, ...] = ()


OutputReader: TypeAlias = Callable[[Entry, Notes], Output]


def result(key: str = "output", *, null_counts: bool = True, scalars: bool = True) -> OutputReader:
    """Return a reader of the usual kind of result: a string that may hold JSON, content parts, or any JSON.

    Args:
        key: where it is.
        null_counts: whether a recorded null is a result; in items that hold call and result it means none yet.
        scalars: whether ``"21"`` is the number 21; free-text tools return text, of which only objects and arrays
            are decoded.
    """

    def read(entry: Entry, notes: Notes) -> Output:
        item = entry.item
        if key not in item or (item[key] is None and not null_counts):
            return judged(entry, missing(entry))
        if isinstance(item[key], str):
            found = _from_string(entry, item[key], scalars, notes, key)
        elif are_parts(item[key]):
            found = _from_parts(entry, item[key], scalars, notes, key)
        else:
            segment = entry.verbatim(key)
            text = "" if item[key] is None else shown(segment)
            found = Output(item[key], segment.pointer, True, text=text, segments=(segment,))
        return judged(entry, found)

    return read


def missing(entry: Entry) -> Output:
    """Return that the item records no result."""
    return Output(pointer=entry.pointer())


def judged(entry: Entry, output: Output) -> Output:
    """Return ``output`` with what the record says, or suggests, about its failure."""
    error = stated_failure(entry.item, output.value, output.text)
    if error is None:
        return replace(output, suspicion=suspected_failure(output.value)) if output.available else output
    recorded = entry.item.get("error")
    extra = (entry.segment(recorded, "error"),) if recorded else ()
    return replace(output, error=error, text=output.text or error, segments=output.segments + extra)


def mcp(entry: Entry, notes: Notes) -> Output:
    """Read the result of an MCP call, or the error that stands in its place."""
    found = result(null_counts=False)(entry, notes)
    if found.available or not entry.item.get("error"):
        return found
    return replace(found, available=True, pointer=entry.pointer("error"))


def patch(entry: Entry, notes: Notes) -> Output:
    """Read the result of applying a patch: its status is one, with or without a log."""
    return replace(result(scalars=False)(entry, notes), available=True)


def program(entry: Entry, notes: Notes) -> Output:
    """Read what a program returned; one that did not finish has failed."""
    found = result("result", scalars=False)(entry, notes)
    return failed(found, "status incomplete") if entry.item.get("status") == "incomplete" else found


def command(entry: Entry, notes: Notes) -> Output:
    """Read what a command printed; a non-zero exit code is a failure."""
    found = result(null_counts=False, scalars=False)(entry, notes)
    code = entry.item.get("exit_code")
    return failed(found, f"exit code {code}") if code else found


def failed(output: Output, error: str) -> Output:
    """Return ``output`` as that of a failed call, for a reason that only its item type knows."""
    return output if output.error is not None else replace(output, error=error, suspicion=None)


def approval(entry: Entry, _: Notes) -> Output:
    """Read a user's answer to a request for approval. It is no result; a call that was denied has not failed."""
    denied = entry.item.get("approve") is False
    reason = entry.named("reason")
    segments = (entry.string(reason, "reason"),) if reason else ()
    text = ": ".join(filter(None, ("denied" if denied else "approved", reason)))
    return Output(pointer=entry.pointer(), denied=denied, text=text, segments=segments)


def _from_string(entry: Entry, text: str, scalars: bool, notes: Notes, *path: str | int) -> Output:
    decoded = decode(text)
    place: tuple[str | int, ...] = ("items", entry.index, *entry.base, *path)
    for repeated in decoded.repeated_keys:
        notes.add("repeated_key", *place, detail=repeated)
    if decoded.replaced:
        notes.add("replaced_characters", *place, count=decoded.replaced)
    is_value = decoded.error is None and (scalars or isinstance(decoded.value, dict | list))
    segment = entry.string(text, *path)
    value = decoded.value if is_value else text
    return Output(value, segment.pointer, True, text=shown(segment), segments=(segment,))


def _from_parts(entry: Entry, values: list[Json], scalars: bool, notes: Notes, key: str) -> Output:
    found = list(parts(entry, values, key))
    if len(found) == 1 and found[0].segment is not None:
        return _from_string(entry, found[0].segment.text, scalars, notes, key, *found[0].path)
    segments = tuple(part.segment for part in found if part.segment is not None)
    text = "\n".join(part.text or "" for part in found)
    return Output(text, entry.pointer(key), True, text=text, segments=segments)
