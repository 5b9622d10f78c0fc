"""What a message, an output or a piece of reasoning says: its text, from a string or from a list of parts.

Pictures and files are shown as placeholders: their bytes say nothing to a judge, cost a fortune in tokens and would
drown the words around them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from app.transcripts.entry import Entry
from app.transcripts.model import Json, Segment
from app.transcripts.notes import Notes
from app.transcripts.text import without_escapes

TEXT_KEYS = {
    "output_text": "text",
    "input_text": "text",
    "text": "text",
    "summary_text": "text",
    "reasoning_text": "text",
    "refusal": "refusal",
}
"""Types of content parts that hold text, and the key it is under."""

PLACEHOLDERS = {
    "input_image": "[image]",
    "output_image": "[image]",
    "image": "[image]",
    "image_url": "[image]",
    "computer_screenshot": "[image]",
    "input_file": "[file]",
    "file": "[file]",
    "input_audio": "[audio]",
    "output_audio": "[audio]",
    "audio": "[audio]",
    "encrypted_content": "[encrypted]",
}
"""Types of content parts that are shown as what they are."""

_DATA_IMAGE = re.compile(r"data:image/[\w.+-]{1,40}(?:;[\w.=+-]{1,60}){0,3};base64,[A-Za-z0-9+/=_\-]*+")


@dataclass(frozen=True, slots=True)
class Part:
    """One content part: its type, the text a reader sees of it, and where that text stands."""

    type: str
    text: str | None
    """None for a type that is not known."""
    segment: Segment | None = None
    path: tuple[str | int, ...] = ()
    """Where that text stands inside the list of parts."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a message says."""

    text: str
    segments: tuple[Segment, ...] = ()
    refusal: bool = False


def without_images(text: str) -> str:
    """Return ``text`` with pictures in ``data:`` URLs replaced by ``[image]``."""
    return _DATA_IMAGE.sub("[image]", text) if ";base64," in text else text


def shown(segment: Segment) -> str:
    """Return a segment as a reader sees it: no pictures and, in JSON text, characters instead of their escapes."""
    return without_images(segment.text if segment.is_string else without_escapes(segment.text))


def parts(entry: Entry, values: list[Json], *path: str | int) -> Iterator[Part]:
    """Yield the content parts that stand at ``path``."""
    for number, value in enumerate(values):
        if isinstance(value, str):
            yield Part("string", without_images(value), entry.string(value, *path, number), (number,))
            continue
        type_ = value.get("type") if isinstance(value, dict) else None
        type_ = type_ if isinstance(type_, str) else ""
        key = TEXT_KEYS.get(type_, "")
        text = value[key] if key and key in value else None
        if isinstance(text, str):
            yield Part(type_, without_images(text), entry.string(text, *path, number, key), (number, key))
        else:
            yield Part(type_, PLACEHOLDERS.get(type_))


def are_parts(value: Json) -> bool:
    """Say whether ``value`` is a list of content parts rather than any other list."""
    return isinstance(value, list) and bool(value) and all(_is_part(part) for part in value)


def _is_part(value: Json) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return False
    return value["type"] in PLACEHOLDERS or isinstance(value.get(TEXT_KEYS.get(value["type"], "")), str)


def message(entry: Entry, notes: Notes) -> Content:
    """Read a user's or system's message: all its text, a line break between parts."""
    return _text(entry, "content", notes)


def reasoning(entry: Entry, notes: Notes) -> Content:
    """Read reasoning: its summary, else its full text, where the recording has it."""
    summary = _text(entry, "summary", notes)
    return summary if summary.text else _text(entry, "content", notes)


def reply(entry: Entry, notes: Notes) -> Content:
    """Read an assistant's message: its ``output_text`` parts, joined; a refusal counts as text and is flagged.

    Histories that are replayed hold plain strings instead, which is as good, or input parts: those are read where
    there is no ``output_text``, and noted.
    """
    value = entry.item.get("content")
    if not isinstance(value, list):
        return _text(entry, "content", notes)
    found = list(parts(entry, value, "content"))
    spoken = {"output_text"} if any(part.type == "output_text" for part in found) else {"text", "input_text", "string"}
    texts: list[str] = []
    refusals: list[str] = []
    segments: list[Segment] = []
    for part in found:
        if part.segment is None or part.type not in spoken | {"refusal"}:
            notes.add("unknown_content_part", *_place(entry), detail=part.type)
            continue
        if part.type not in ("output_text", "refusal"):
            notes.add("content_fallback", *_place(entry), detail=part.type)
        segments.append(part.segment)
        (refusals if part.type == "refusal" else texts).append(part.text or "")
    text = "\n".join(filter(None, ["".join(texts), *refusals]))
    return Content(text, tuple(segments), refusal=bool(refusals))


def _text(entry: Entry, key: str, notes: Notes) -> Content:
    value = entry.item.get(key)
    if isinstance(value, str):
        return Content(without_images(value), (entry.string(value, key),))
    if not isinstance(value, list):
        if value is not None:
            notes.add("content_ignored", *_place(entry), key)
        return Content("")
    found = list(parts(entry, value, key))
    for part in found:
        if part.text is None:
            notes.add("unknown_content_part", *_place(entry), detail=part.type)
    text = "\n".join(part.text for part in found if part.text is not None)
    return Content(text, tuple(part.segment for part in found if part.segment is not None))


def _place(entry: Entry) -> tuple[str | int, ...]:
    return ("items", entry.index, *entry.base)
