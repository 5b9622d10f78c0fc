"""Problem details (RFC 9457): the one shape of every answer from 400 on.

``code`` is the stable name of what went wrong, ``detail`` says it to a person. Foreign text is clipped and escaped
before it gets here or here at the latest; a request body is never echoed. A 422 is at most ``LARGEST`` bytes however
many problems a body has.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.responses import Response

from app.pipeline.errors import Problem

MEDIA_TYPE = "application/problem+json"
LARGEST = 64 * 1024
MOST_ERRORS = 100
LONGEST_MESSAGE = 300
LONGEST_POINTER = 1000
_ROOM = LARGEST - 2048
_UNPRINTABLE = re.compile(r"[^\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of problem: its status, and what it means (this is the text of the OpenAPI document)."""

    status: int
    title: str
    meaning: str


KINDS: Mapping[str, Kind] = {
    "unauthenticated": Kind(401, "Unauthorized", "No valid API key came with the request."),
    "insufficient_scope": Kind(403, "Forbidden", "The API key does not have the scope this needs."),
    "not_found": Kind(404, "Not Found", "There is no such path, or no such object in the key's workspace."),
    "method_not_allowed": Kind(405, "Method Not Allowed", "The path exists, but not with this method; see Allow."),
    "receive_timeout": Kind(408, "Request Timeout", "The body did not arrive in time; nothing was stored."),
    "already_finished": Kind(409, "Conflict", "The evaluation has ended, so it cannot be canceled."),
    "not_rerunnable": Kind(409, "Conflict", "Forensic evaluations replay fixed transcripts and cannot be re-run."),
    "unsupported_media_type": Kind(
        415, "Unsupported Media Type", "The body is not declared as plain, unencoded application/json in UTF-8."
    ),
    "invalid_request": Kind(422, "Unprocessable Content", "The body breaks rules; `errors` lists them all."),
    "body_too_large": Kind(422, "Unprocessable Content", "The body is larger than 30 MB; split it."),
    "idempotency_key_reused": Kind(
        422, "Unprocessable Content", "The Idempotency-Key was used before with another body."
    ),
    "invalid_parameter": Kind(
        422, "Unprocessable Content", "A header or query parameter is unknown or has no acceptable value."
    ),
    "bad_request": Kind(400, "Bad Request", "The request is not valid HTTP."),
    "internal_error": Kind(500, "Internal Server Error", "A fault of the service; it is in its log under the id."),
    "busy": Kind(503, "Service Unavailable", "Too much is being received at once; try again after Retry-After."),
    "not_ready": Kind(503, "Service Unavailable", "The database does not answer, or its schema is not current."),
    "store_unavailable": Kind(
        503, "Service Unavailable", "Nothing can be stored or read right now; nothing was changed."
    ),
}

ITEM_CODES: Mapping[str, str] = {
    "body_too_large": "The body is larger than 30 MB.",
    "unknown_parameter": "There is no such query parameter here.",
    "invalid_parameter": "A query parameter's value is not acceptable.",
    "invalid_header": "A header's value is not acceptable.",
    "invalid_cursor": "`after` is not the id of an object of this list.",
    "idempotency_key_reused": "The Idempotency-Key belongs to another body.",
}
"""Codes of single problems that this layer finds itself; those of bodies come with the intake's rules."""


@dataclass(frozen=True, slots=True)
class Item:
    """One entry of ``errors``, for a header or query parameter."""

    code: str
    message: str
    parameter: str


class ProblemError(Exception):
    """A request that is answered with a problem."""

    def __init__(
        self, code: str, detail: str, *, items: Sequence[Problem | Item] = (), headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail
        self.items = tuple(items)
        self.headers = headers


def problem(
    request_id: str,
    code: str,
    detail: str,
    *,
    items: Sequence[Problem | Item] = (),
    count: int | None = None,
    headers: Mapping[str, str] | None = None,
    extra: Mapping[str, Any] | None = None,
) -> Response:
    """Return a problem as a response.

    Args:
        request_id: The id under which the request is known in the log.
        code: One of ``KINDS``.
        detail: What happened, for people.
        items: Single problems; only a 422 lists them.
        count: How many there are; None: nobody counted.
        headers: Further response headers.
        extra: Further members.
    """
    kind = KINDS[code]
    members: dict[str, Any] = {
        "type": "about:blank",
        "title": kind.title,
        "status": kind.status,
        "detail": detail,
        "code": code,
        "request_id": request_id,
        **(extra or {}),
    }
    if kind.status == 422:  # noqa: PLR2004 - the status itself
        errors = _fitting(items)
        members |= {"errors": errors, "error_count": count, "truncated": count is None or count > len(errors)}
    return Response(msgspec.json.encode(members), kind.status, headers, MEDIA_TYPE)


def printable(text: str, longest: int = LONGEST_MESSAGE) -> str:
    """Return text with everything unprintable spelled out and clipped to ``longest`` characters."""
    shown = _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text[: longest + 1])
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def _fitting(items: Iterable[Problem | Item]) -> list[msgspec.Raw]:
    """Encode as many items as there is room for."""
    kept: list[msgspec.Raw] = []
    room = _ROOM
    for item in items:
        encoded = msgspec.json.encode(_members(item))
        room -= len(encoded) + 1
        if room < 0 or len(kept) == MOST_ERRORS:
            break
        kept.append(msgspec.Raw(encoded))
    return kept


def _members(item: Problem | Item) -> dict[str, Any]:
    if isinstance(item, Item):
        return {
            "pointer": "",
            "code": item.code,
            "message": printable(item.message),
            "conversation": None,
            "parameter": printable(item.parameter),
        }
    members: dict[str, Any] = {
        "pointer": _pointer(item.pointer),
        "code": item.code,
        "message": printable(item.message),
        "conversation": item.conversation,
    }
    if item.line is not None:
        members |= {"line": item.line, "column": item.column}
    return members


def _pointer(pointer: str) -> str:
    """Return a pointer that can be sent: one that is too long names the closest parent that is not."""
    if len(pointer) > LONGEST_POINTER:
        pointer = pointer[:LONGEST_POINTER].rpartition("/")[0]
    return re.sub("[\ud800-\udfff]", "\ufffd", pointer)
