"""The `responses` of a route: what it returns, and which problems it can answer with."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from pydantic import BaseModel

from app.api.problems import KINDS, MEDIA_TYPE

Responses: TypeAlias = dict[int | str, dict[str, Any]]

REQUEST_ID: Mapping[str, Any] = {"description": "The request's id.", "schema": {"type": "string"}}
_AUTHENTICATED = ("unauthenticated", "insufficient_scope")
_ALWAYS = ("invalid_parameter", "internal_error", "store_unavailable")


def answers(
    status: int,
    model: type[BaseModel] | None,
    *kinds: str,
    headers: Mapping[str, str] | None = None,
    content: Mapping[str, Any] | None = None,
    description: str = "Done.",
) -> Responses:
    """Describe an authenticated route.

    Args:
        status: The status when all went well.
        model: The JSON object it then returns.
        *kinds: Codes of the problems it can answer with beside those every route has.
        headers: Name → description of headers of its own.
        content: Media type → schema, where it returns no JSON object.
        description: What a good answer means.
    """
    good: dict[str, Any] = {"description": description, "headers": _headers(headers or {})}
    if model is not None:
        good["model"] = model
    if content is not None:
        good["content"] = {media_type: {"schema": schema} for media_type, schema in content.items()}
    return {status: good, **problems(*_AUTHENTICATED, *kinds, *_ALWAYS)}


def problems(*codes: str) -> Responses:
    """Describe problems, those with one status together."""
    by_status: dict[int, list[str]] = {}
    for code in dict.fromkeys(codes):
        by_status.setdefault(KINDS[code].status, []).append(code)
    return {status: _problem(status, by_status[status]) for status in sorted(by_status)}


def _problem(status: int, codes: list[str]) -> dict[str, Any]:
    name = "InvalidRequest" if status == 422 else "NotReady" if codes == ["not_ready"] else "Problem"  # noqa: PLR2004
    headers = {}
    if status == 401:  # noqa: PLR2004 - the status itself
        headers["WWW-Authenticate"] = "How to authenticate."
    if status == 503:  # noqa: PLR2004 - the status itself
        headers["Retry-After"] = "Seconds to wait."
    return {
        "description": " ".join(f"`{code}`: {KINDS[code].meaning}" for code in codes),
        "headers": _headers(headers),
        "content": {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{name}"}}},
    }


def _headers(descriptions: Mapping[str, str]) -> dict[str, Any]:
    described = {name: {"description": text, "schema": {"type": "string"}} for name, text in descriptions.items()}
    return {"X-Request-Id": dict(REQUEST_ID), **described}
