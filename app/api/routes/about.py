"""The service about itself: its judges, its health, its API."""

import asyncio
from collections.abc import Awaitable

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.api import wire
from app.api.access import AnyKey
from app.api.collaborators import Collaborators
from app.api.failures import request_id
from app.api.problems import KINDS, problem
from app.api.routes.answering import NoQuery, json_answer, operation_id
from app.api.schema import about as schema
from app.api.schema.answers import answers, problems
from app.pipeline.errors import QueueUnavailableError, StoreUnavailableError

router = APIRouter(generate_unique_id_function=operation_id)
PUBLIC = frozenset({"/healthz", "/readyz", "/openapi.json"})
"""Paths that need no key."""


@router.get(
    "/v1/judges",
    summary="List judges",
    tags=["Judges"],
    responses=answers(200, schema.JudgeList, description="Every judge, in catalogue order."),
)
async def list_judges(caller: AnyKey, _: NoQuery) -> Response:
    """What is examined: the question of each judge, its scale, the findings it can give."""
    return json_answer(wire.listing([wire.judge(each) for each in caller.api.judges], has_more=False))


@router.get(
    "/healthz",
    summary="Is the process alive",
    tags=["Service"],
    responses={200: {"model": schema.Health, "description": "It is."}},
)
async def health() -> Response:
    """Looks at nothing else: restart the process when this does not answer."""
    return json_answer({"status": "ok"})


@router.get(
    "/readyz",
    summary="Can the service do its work",
    tags=["Service"],
    responses={
        200: {"model": schema.Readiness, "description": "It can. The queue may be away: work then starts late."},
        **problems("not_ready"),
    },
)
async def readiness(request: Request) -> Response:
    """Send requests elsewhere while this answers 503: the database does not answer, or its schema is not current."""
    api: Collaborators = request.app.state.collaborators
    patience = api.limits.check_seconds
    async with asyncio.TaskGroup() as group:
        store = group.create_task(_answers(api.store.check(), patience))
        queue = group.create_task(_answers(api.queue.check(), patience))
    parts = {"store": store.result(), "queue": queue.result()}
    if parts["store"] == "ok":
        return json_answer({"status": "ready", **parts})
    return problem(
        request_id(request), "not_ready", KINDS["not_ready"].meaning, headers={"retry-after": "5"}, extra=parts
    )


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> Response:
    """Return the OpenAPI document."""
    return Response(request.app.state.openapi(), media_type="application/json")


async def _answers(check: Awaitable[None], patience: float) -> str:
    try:
        async with asyncio.timeout(patience):
            await check
    except (StoreUnavailableError, QueueUnavailableError, TimeoutError):
        return "unavailable"
    return "ok"
