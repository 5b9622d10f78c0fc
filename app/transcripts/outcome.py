"""When a call failed: because the record says so, or only because its result reads that way.

A call **failed** when its JSON object result has a top-level ``error`` whose value is not null, false or empty; when
the item's own ``error`` or ``status`` says so; when an MCP result has ``isError``. ``error: null`` is how many tools
report success. A result that merely reads like an error (``Error: not found`` as plain text, ``success: false``) is
the weaker **suspected failure**.
"""

import json
import re
from collections.abc import Mapping

from app.transcripts.model import Json

_READS_LIKE_ERROR = re.compile(
    r"\s*+(?:(?:Error|Exception|Traceback)\b|[\w.]{0,80}(?:Error|Exception):|(?i:error|exception|traceback)\s{0,8}:)"
)
_FAILED_STATUSES = ("error", "failed")
_FIRST_HTTP_ERROR = 400
_LONGEST_REASON = 300


def stated_failure(item: Mapping[str, Json], value: Json, text: str) -> str | None:
    """Return what the record says went wrong, or None when it says nothing of the kind.

    Args:
        item: the item that holds the result, for its own ``error`` and ``status``.
        value: the decoded result.
        text: the result as text; what a failed status is explained with.
    """
    for error in (item.get("error"), value.get("error") if isinstance(value, dict) else None):
        if not _says_nothing(error):
            return describe(error)
    if isinstance(value, dict) and (value.get("isError") is True or value.get("is_error") is True):
        return describe(value.get("content") or "isError")
    if item.get("status") in _FAILED_STATUSES:
        return text or f"status {item['status']}"
    return None


def suspected_failure(value: Json) -> str | None:
    """Return the words that make a result read like an error, or None."""
    if isinstance(value, str):
        return value.strip()[:_LONGEST_REASON] if _READS_LIKE_ERROR.match(value) else None
    if not isinstance(value, dict):
        return None
    for key in ("errors", "exception"):
        if not _says_nothing(value.get(key)):
            return f"{key}: {describe(value[key])[:_LONGEST_REASON]}"
    for key in ("success", "ok"):
        if value.get(key) is False:
            return f"{key} is false"
    status = value.get("status")
    is_http_error = isinstance(status, int | float) and status >= _FIRST_HTTP_ERROR
    return f"status {status}" if is_http_error or status in _FAILED_STATUSES else None


def describe(error: Json) -> str:
    """Return an error as one line of text where it has a familiar form, else as JSON."""
    if isinstance(error, str):
        return error
    if isinstance(error, list):
        texts = [part["text"] for part in error if isinstance(part, dict) and isinstance(part.get("text"), str)]
        return "\n".join(texts) if texts else _compact(error)
    if not isinstance(error, dict):
        return _compact(error)
    message = error.get("message") or error.get("content")
    if not message or not isinstance(message, str | list):
        return _compact(error)
    code = error.get("code")
    label = code if isinstance(code, str) else " ".join(str(word) for word in (error.get("type"), code) if word)
    return f"{label}: {describe(message)}" if label else describe(message)


def _says_nothing(error: Json) -> bool:
    return error is None or error is False or error in ("", [], {})


def _compact(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
