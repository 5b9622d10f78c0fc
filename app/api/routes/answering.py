"""What handlers share: JSON bytes, entity tags, and the refusal of parameters that mean nothing."""

from collections.abc import Mapping
from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import Depends
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from app.api import wire
from app.api.problems import Item, ProblemError, printable

_LONGEST_NAME = 60


def json_answer(value: wire.Wire, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a wire object as a response."""
    return Response(wire.encode(value), status, headers, "application/json")


def etag(revision: int) -> str:
    """Return the entity tag of a revision; weak, since another release may write the same state otherwise."""
    return f'W/"{revision}"'


def matches(request: Request, tag: str) -> bool:
    """Return whether the client already has what ``tag`` names (RFC 9110, weak comparison)."""
    given = request.headers.get("if-none-match")
    if given is None:
        return False
    opaque = tag.removeprefix("W/")
    return any(each.strip().removeprefix("W/") in {opaque, "*"} for each in given.split(","))


def operation_id(route: APIRoute) -> str:
    """Return a route's name in the OpenAPI document: clients are generated with it."""
    return route.name


async def no_query(request: Request) -> None:
    """Refuse query parameters where there are none.

    Raises:
        ProblemError: naming each.
    """
    names = [name for name, _ in parse_qsl(request.url.query, keep_blank_values=True)]
    if names:
        shown = [printable(name, _LONGEST_NAME) for name in names]
        items = [Item("unknown_parameter", f"There is no query parameter {name} here.", name) for name in shown]
        raise ProblemError("invalid_parameter", "This takes no query parameters.", items=items)


NoQuery = Annotated[None, Depends(no_query)]
"""Goes after the caller in a handler's parameters: who nobody knows is told that first."""
