"""What an endpoint can do instead of answering, classified once, so that everyone else reads a reason code.

Foreign text is shown clipped and on one line, never after 401 or 403: those answers like to repeat the key.
"""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import msgspec

MAX_WAIT_SECONDS = 86_400.0
_EXCERPT_CHARS = 200
_COMPLAINT_CHARS = 2000
_TRANSIENT = frozenset({408, 409, 425, 429})
_EXHAUSTED = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
_OVERFLOW_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"})
_OVERFLOW = re.compile(
    r"context (length|window|size)|maximum context|(prompt|input|request) is too (long|large)|too many (input )?tokens"
)


class EndpointError(Exception):
    """An exchange that brought no completion.

    ``transient`` says that the same request may succeed later; ``wait_seconds`` is how long the endpoint asks to wait.
    ``parameter`` and ``complaint`` are what it says about a request it calls bad, else empty.
    """

    def __init__(
        self,
        reason_code: str,
        message: str,
        *,
        transient: bool = False,
        wait_seconds: float | None = None,
        parameter: str = "",
        complaint: str = "",
    ) -> None:
        super().__init__(message)
        self.reason_code = reason_code
        self.transient = transient
        self.wait_seconds = wait_seconds
        self.parameter = parameter
        self.complaint = complaint


class _Detail(msgspec.Struct):
    message: object = None
    param: object = None
    code: object = None
    type: object = None

    @property
    def codes(self) -> set[str]:
        return {str(self.code), str(self.type)}


class _Envelope(msgspec.Struct):
    error: _Detail | str | None = None


def refused(status: int, headers: Mapping[str, str], body: bytes) -> EndpointError:
    """Classify an answer whose status is not 2xx."""
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return EndpointError("unauthorized", f"The judge endpoint refused the key (HTTP {status}).")
    if status < HTTPStatus.BAD_REQUEST:
        return EndpointError(
            "bad_request", f"The judge endpoint redirects (HTTP {status}); redirects are not followed."
        )
    detail = _detail(body)
    said = f"The judge endpoint answered HTTP {status}: {excerpt(str(detail.message).encode())}"
    if status in _TRANSIENT or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        reason = "rate_limited" if status == HTTPStatus.TOO_MANY_REQUESTS else "provider_error"
        used_up = bool(detail.codes & _EXHAUSTED)
        return EndpointError(reason, said, transient=not used_up, wait_seconds=wait_asked_for(headers))
    parameter = detail.param if isinstance(detail.param, str) else ""
    reason = "not_found" if status == HTTPStatus.NOT_FOUND else _why_bad(status, detail)
    complaint = str(detail.message)[:_COMPLAINT_CHARS].lower() if reason == "bad_request" else ""
    return EndpointError(reason, said, parameter=parameter, complaint=complaint)


def _why_bad(status: int, detail: "_Detail") -> str:
    overflow = detail.codes & _OVERFLOW_CODES or _OVERFLOW.search(str(detail.message)[:_COMPLAINT_CHARS].lower())
    return "context_overflow" if overflow or status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE else "bad_request"


def excerpt(body: bytes) -> str:
    """Return the start of foreign text in printable ASCII on one line."""
    text = body[: 4 * _EXCERPT_CHARS].decode("utf-8", "replace")
    clipped = " ".join(text.split())[:_EXCERPT_CHARS]
    return clipped.encode("ascii", "backslashreplace").decode("ascii")


def wait_asked_for(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that Retry-After or retry-after-ms asks for, at most a day; None without a usable one."""
    asked = _number(headers.get("retry-after-ms"))
    if asked is not None:
        asked /= 1000
    else:
        asked = _number(headers.get("retry-after")) or _until(headers.get("retry-after"))
    return None if asked is None else min(max(asked, 0.0), MAX_WAIT_SECONDS)


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _until(value: str | None) -> float | None:
    try:
        moment = parsedate_to_datetime(value or "")
    except ValueError:
        return None
    return (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds()


def _detail(body: bytes) -> _Detail:
    try:
        error = msgspec.json.decode(body, type=_Envelope).error
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError):
        error = None
    if isinstance(error, _Detail) and error.message is not None:
        return error
    return _Detail(message=error if isinstance(error, str) else body[:_COMPLAINT_CHARS].decode("utf-8", "replace"))
