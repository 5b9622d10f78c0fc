"""An admitted conversation becomes a row: hashed as received, compressed as kept.

Rows travel from the process that reads a large body to the one that stores it, a frame of them at a time, so that
neither ever holds all of them. The client's own metadata travels beside its row as JSON text, because the frames'
format has no integers beyond 64 bits.
"""

import dataclasses
import hashlib
from collections.abc import Iterator
from typing import IO

import msgspec
import zstandard

from app.evaluation.model import NewConversation
from app.evaluation.reading import Reading
from app.transcripts.model import Warning_
from app.transcripts.recording import StrictDecoder

FRAME_ROWS = 256
FRAME_BYTES = 1 << 20

_LEVEL = 3
_LENGTH_BYTES = 8


class _Row(msgspec.Struct, gc=False, omit_defaults=True):
    """A ``NewConversation`` on its way: the same members, cheaper to make half a million times."""

    index: int
    format: str
    body: bytes
    size: int
    sha256: str
    stored_sha256: str
    client_id: str | None = None
    redactions: tuple[str, ...] = ()
    warnings: tuple[Warning_, ...] = ()


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[list[NewConversation], dict[int, str]]).decode


def frames(reading: Reading) -> Iterator[bytes]:
    """Yield a request's conversations, in order, as frames limited in rows and, as far as one row allows, in bytes."""
    frame: list[_Row] = []
    metadata: dict[int, str] = {}
    size = 0
    for known, row in zip(reading.conversations, _rows(reading), strict=True):
        if known.metadata is not None:
            metadata[len(frame)] = known.metadata
        frame.append(row)
        size += len(row.body)
        if len(frame) == FRAME_ROWS or size >= FRAME_BYTES:
            yield _encode((frame, metadata))
            frame, metadata, size = [], {}, 0
    if frame:
        yield _encode((frame, metadata))


def unpack(frame: bytes) -> list[NewConversation]:
    """Return the conversations of a frame; numbers in metadata beyond a double's range become the largest double."""
    conversations, metadata = _decode(frame)
    for index, text in metadata.items():
        conversations[index] = dataclasses.replace(conversations[index], metadata=StrictDecoder().decode(text))
    return conversations


def write(file: IO[bytes], reading: Reading) -> None:
    """Write the frames of a request to a file."""
    for frame in frames(reading):
        file.write(len(frame).to_bytes(_LENGTH_BYTES))
        file.write(frame)


def read_frames(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the frames of a file."""
    while length := int.from_bytes(file.read(_LENGTH_BYTES)):
        yield file.read(length)


def _rows(reading: Reading) -> Iterator[_Row]:
    compress = zstandard.ZstdCompressor(level=_LEVEL).compress
    for index, (known, received) in enumerate(zip(reading.conversations, reading.received, strict=True)):
        sha256 = hashlib.sha256(received).hexdigest()
        kept, stored_sha256 = received, sha256
        if known.redacted is not None:
            kept = known.redacted
            stored_sha256 = hashlib.sha256(kept).hexdigest()
        yield _Row(
            index,
            known.format,
            compress(kept),
            len(received),
            sha256,
            stored_sha256,
            known.client_id,
            known.redactions,
            known.warnings,
        )
