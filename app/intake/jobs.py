"""What the service and its reading processes say to each other: one frame a question, one frame an answer."""

import msgspec

from app.evaluation.model import EvaluationRequest, EvaluationWarning
from app.transcripts.model import Violation, Warning_

LENGTH_BYTES = 8


class AdmitJob(msgspec.Struct, tag="admit", frozen=True):
    """Read a body, from a file or as sent along, and write the rows to a file."""

    rows_path: str
    judges: dict[str, bool]
    models: tuple[str, ...]
    webhook_http_hosts: bool
    path: str | None = None
    data: bytes = b""


class PresentJob(msgspec.Struct, tag="present", frozen=True):
    """Present a conversation, given as stored, with the warnings it was stored with."""

    stored: bytes
    known: tuple[Warning_, ...] = ()


class Refused(msgspec.Struct, tag="refused", frozen=True):
    """The body breaks rules."""

    violations: tuple[Violation, ...]
    count: int | None
    line: int | None
    column: int | None


class Accepted(msgspec.Struct, tag="accepted", frozen=True):
    """The body breaks no rule, and its rows are written."""

    request: EvaluationRequest
    total: int
    warnings: tuple[EvaluationWarning, ...]


class Presented(msgspec.Struct, tag="presented", frozen=True):
    """The presentation, as JSON."""

    document: bytes


Job = AdmitJob | PresentJob
Reply = Refused | Accepted | Presented

encode = msgspec.msgpack.Encoder().encode
decode_job = msgspec.msgpack.Decoder(Job).decode
decode_reply = msgspec.msgpack.Decoder(Reply).decode
