"""Every error that leaves a route, as a problem. One table, so that no status is decided anywhere else."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from app.api.problems import KINDS, Item, ProblemError, printable, problem
from app.pipeline.errors import (
    BusyError,
    CursorError,
    FinishedError,
    IdempotencyMismatchError,
    NotFoundError,
    RefusedError,
    StoreUnavailableError,
)

_STORE_RETRY_SECONDS = "5"
_BY_STATUS = {404: "not_found", 405: "method_not_allowed"}
_LONGEST_NAME = 60


def add_handlers(app: FastAPI) -> None:
    """Make an application answer every error with a problem."""
    handlers: Mapping[type[Exception], Callable[[Request, Any], Awaitable[Response]]] = {
        ProblemError: _problem,
        RefusedError: _refused,
        NotFoundError: _not_found,
        CursorError: _cursor,
        FinishedError: _finished,
        IdempotencyMismatchError: _mismatch,
        BusyError: _busy,
        StoreUnavailableError: _store_away,
        RequestValidationError: _invalid,
        HTTPException: _http,
    }
    for error, handler in handlers.items():
        app.add_exception_handler(error, handler)


def request_id(request: Request) -> str:
    """Return the id under which the request is known."""
    found: str = request.scope["state"]["request_id"]
    return found


async def _problem(request: Request, error: ProblemError) -> Response:
    return problem(
        request_id(request), error.code, error.detail, items=error.items, count=len(error.items), headers=error.headers
    )


async def _refused(request: Request, error: RefusedError) -> Response:
    many = "many" if error.count is None else str(error.count)
    detail = f"Nothing was stored: the body has {many} problem{'' if error.count == 1 else 's'}."
    return problem(request_id(request), "invalid_request", detail, items=error.problems, count=error.count)


async def _not_found(request: Request, _: NotFoundError) -> Response:
    return problem(request_id(request), "not_found", "There is no such object in this workspace.")


async def _cursor(request: Request, _: CursorError) -> Response:
    message = "after is not the id of an object of this list"
    item = Item("invalid_cursor", message, "after")
    return problem(request_id(request), "invalid_parameter", f"{message}.", items=[item], count=1)


async def _finished(request: Request, _: FinishedError) -> Response:
    return problem(request_id(request), "already_finished", KINDS["already_finished"].meaning)


async def _mismatch(request: Request, _: IdempotencyMismatchError) -> Response:
    meaning = KINDS["idempotency_key_reused"].meaning
    item = Item("idempotency_key_reused", meaning, "Idempotency-Key")
    return problem(request_id(request), "idempotency_key_reused", meaning, items=[item], count=1)


async def _busy(request: Request, error: BusyError) -> Response:
    headers = {"retry-after": str(error.retry_after_seconds)}
    return problem(request_id(request), "busy", KINDS["busy"].meaning, headers=headers)


async def _store_away(request: Request, _: StoreUnavailableError) -> Response:
    headers = {"retry-after": _STORE_RETRY_SECONDS}
    return problem(request_id(request), "store_unavailable", KINDS["store_unavailable"].meaning, headers=headers)


async def _invalid(request: Request, error: RequestValidationError) -> Response:
    """Answer a path or query that FastAPI refused; a malformed id is simply not there."""
    found = error.errors()
    if any(each["loc"][0] == "path" for each in found):
        return await _not_found(request, NotFoundError())
    items = [_parameter(each) for each in found]
    detail = f"{len(items)} query parameter{' is' if len(items) == 1 else 's are'} not acceptable."
    return problem(request_id(request), "invalid_parameter", detail, items=items, count=len(items))


def _parameter(error: Mapping[str, Any]) -> Item:
    name = printable(str(error["loc"][1]), _LONGEST_NAME)
    if error["type"] == "extra_forbidden":
        return Item("unknown_parameter", f"There is no query parameter {name} here.", name)
    return Item("invalid_parameter", f"{name}: {error['msg'].removeprefix('Value error, ')}", name)


async def _http(request: Request, error: HTTPException) -> Response:
    """Answer what the router or the framework raised."""
    code = _BY_STATUS.get(error.status_code, "bad_request" if error.status_code < 500 else "internal_error")  # noqa: PLR2004
    headers = {"allow": ", ".join(_allowed(request))} if code == "method_not_allowed" else None
    return problem(request_id(request), code, KINDS[code].meaning, headers=headers)


def _allowed(request: Request) -> list[str]:
    """Return the methods of every route at this path; a router only knows those of the first."""
    methods: set[str] = set()
    for route in request.app.routes:
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE:
            methods |= route.methods or set()
    return sorted(methods)
