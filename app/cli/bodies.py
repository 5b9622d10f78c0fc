"""Recognises what people keep conversations in, and makes request bodies of it.

A file holds a whole request (an object with ``conversations``), a list of conversations, one conversation, or one
conversation a line (JSONL); as JSON or as YAML. JSON is never written anew: the bytes that were recorded are the
evidence, so they are sent as they stand in the file. A whole request is sent by itself; everything else becomes one
request, in the order given.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from app.cli.failure import CommandError
from app.logs import escape_controls

T = TypeVar("T")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LARGEST_YAML_BYTES = 32 * 1024 * 1024
"""Of JSON made from YAML, whose anchors can multiply a small file without end."""


@dataclass(frozen=True, slots=True)
class _Start:
    """Where text begins, in lines and columns from 1: first in a body, then in its file (None when it was YAML)."""

    line: int
    column: int
    name: str
    of_file: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Submission:
    """A request body, and which place of which file each of its conversations came from."""

    body: bytes
    places: tuple[str, ...]
    """Empty for a whole request file, whose own indices say it, and where they could not be counted."""
    starts: tuple[_Start, ...]

    def locate(self, line: int, column: int) -> str:
        """Return the place in a file of what stands at a line and column of the body."""
        before = [start for start in self.starts if (start.line, start.column) <= (line, column)]
        start = before[-1] if before else self.starts[0]
        if start.of_file is None:
            return start.name
        first, indent = start.of_file
        shift = indent - start.column if line == start.line else 0
        return f"{start.name}, line {line - start.line + first}, column {column + shift}"


@dataclass(frozen=True, slots=True)
class _Piece:
    """The JSON text of some conversations, verbatim and separated by commas, where each stands, and the text itself."""

    text: bytes
    places: tuple[str, ...]
    name: str
    of_file: tuple[int, int] | None


def submissions(files: Sequence[tuple[str, bytes]]) -> list[Submission]:
    """Return the request bodies for named files, whole requests first where they stand.

    Raises:
        CommandError: naming the file, and the line where there is one, of what cannot be read.
    """
    whole: list[Submission] = []
    pieces: list[_Piece] = []
    for name, data in files:
        shape = _recognise(escape_controls(name), data)
        if isinstance(shape, Submission):
            whole.append(shape)
        else:
            pieces += shape
    if not whole and not pieces:
        raise CommandError("There is no conversation in what was given.")
    return [*whole, _joined(pieces)] if pieces else whole


def _joined(pieces: Sequence[_Piece]) -> Submission:
    head = b'{"conversations":['
    body = head + b",".join(piece.text for piece in pieces) + b"]}"
    known = all(piece.places for piece in pieces)
    starts = []
    line, column = 1, len(head) + 1
    for piece in pieces:
        starts.append(_Start(line, column, piece.name, piece.of_file))
        line, column = _after(piece.text + b",", line, column)
    places = tuple(place for piece in pieces for place in piece.places) if known else ()
    return Submission(body, places, tuple(starts))


def _after(text: bytes, line: int, column: int) -> tuple[int, int]:
    """Return the line and column behind ``text``, which begins at those given; columns count characters."""
    before, newline, last = text.rpartition(b"\n")
    width = len(last.decode("utf-8", "replace"))
    return (line + before.count(b"\n") + 1, 1 + width) if newline else (line, column + width)


def _recognise(name: str, data: bytes) -> Submission | list[_Piece]:
    suffix = Path(name).suffix.lower()
    if suffix in {".yaml", ".yml"}:
        return _shape(name, _from_yaml(name, data), verbatim=False)
    if suffix in {".jsonl", ".ndjson"}:
        return list(_lines(name, data))
    if _problem(data) is None:
        return _shape(name, data)
    if _is_lines(data):
        return list(_lines(name, data))
    if suffix == ".json" or data.lstrip(BYTE_ORDER_MARK + b" \t\r\n")[:1] in {b"{", b"["}:
        raise CommandError(f"{name}: {_problem(data)}")
    return _shape(name, _from_yaml(name, data), verbatim=False)


def _shape(name: str, data: bytes, *, verbatim: bool = True) -> Submission | list[_Piece]:
    """Tell a whole request, a list and a single conversation apart. ``data`` is JSON, ``verbatim`` as in the file."""
    marked = data.removeprefix(BYTE_ORDER_MARK)
    bare = marked.strip()

    def of_file(text: bytes) -> tuple[int, int] | None:
        return _after(marked[: marked.index(text)], 1, 1) if verbatim else None

    if bare[:1] == b"[":
        inside = bare[1:-1].strip()
        places = tuple(f"{name} [{index}]" for index in range(len(_decoded(bare, list[msgspec.Raw]))))
        return [_Piece(inside, places, name, of_file(inside))] if inside else []
    if bare[:1] != b"{":
        raise CommandError(f"{name}: holds neither conversations nor a request")
    whole = "conversations" in _decoded(bare, dict[str, msgspec.Raw])
    if whole:
        return Submission(data, (), (_Start(1, 1, name, (1, 1) if verbatim else None),))
    return [_Piece(bare, (name,), name, of_file(bare))]


def _lines(name: str, data: bytes) -> Iterator[_Piece]:
    for number, line in enumerate(data.removeprefix(BYTE_ORDER_MARK).split(b"\n"), 1):
        if text := line.strip():
            if (problem := _problem(text)) is not None:
                raise CommandError(f"{name}, line {number}: {problem}")
            indent = line[: line.index(text)].decode("utf-8", "replace")
            yield _Piece(text, (f"{name}:{number}",), name, (number, len(indent) + 1))


def _is_lines(data: bytes) -> bool:
    """Whether it looks like one JSON object a line: the first line is complete, and there are more."""
    first, _, rest = data.removeprefix(BYTE_ORDER_MARK).lstrip().partition(b"\n")
    return bool(rest.strip()) and first.startswith(b"{") and _problem(first) is None


def _problem(data: bytes) -> str | None:
    """Say what keeps ``data`` from being JSON; None when it is. The service has the stricter last word."""
    try:
        msgspec.json.decode(data.removeprefix(BYTE_ORDER_MARK), type=msgspec.Raw)
    except msgspec.DecodeError:
        pass
    else:
        return None
    try:
        json.loads(data)
    except json.JSONDecodeError as error:
        return f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
    except UnicodeDecodeError as error:
        return f"is not UTF-8: byte {error.start} cannot be read"
    except (ValueError, RecursionError):
        return None  # JSON beyond what Python decodes: the service says what it thinks of it
    return None


def _decoded(data: bytes, kind: type[T]) -> T | Any:
    """Decode the outermost level; with what the fast parser refuses (a lone surrogate, say), all of it."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError:
        pass
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return ()  # as above: the service says what it thinks of it


class _PlainLoader(yaml.SafeLoader):
    """YAML restricted to what JSON knows: a date stays the text that was written."""


_PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _from_yaml(name: str, data: bytes) -> bytes:
    """Turn YAML into JSON; several documents are several conversations."""
    try:
        documents = [each for each in yaml.load_all(data, _PlainLoader) if each is not None]
        return _to_json(documents[0] if len(documents) == 1 else documents)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise CommandError(f"{name}: is not YAML: {escape_controls(str(error.problem))}{place}") from None
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise CommandError(f"{name}: cannot be read as YAML: {escape_controls(str(error))[:200]}") from None


def _to_json(value: Any) -> bytes:
    parts: list[str] = []
    size = 0
    for part in json.JSONEncoder(allow_nan=False).iterencode(value):
        size += len(part)
        if size > LARGEST_YAML_BYTES:
            raise ValueError("it grows too large: do its anchors repeat each other?")
        parts.append(part)
    return "".join(parts).encode()
