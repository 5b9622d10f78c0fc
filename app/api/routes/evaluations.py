"""Evaluations: submit, follow, cancel, delete, export."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from app.api import queries, wire
from app.api.access import Reads, Submits
from app.api.problems import KINDS, ProblemError
from app.api.queries import EvaluationId
from app.api.receiving import idempotency_key, received
from app.api.routes.answering import NoQuery, etag, json_answer, matches, operation_id
from app.api.schema import evaluations as schema
from app.api.schema.answers import answers
from app.api.schema.document import IF_NONE_MATCH, SUBMIT_BODY
from app.api.schema.document import SUBMIT_PATH as PATH
from app.api.streams import Stream, events, json_lines, started, while_connected
from app.pipeline import cancel, read
from app.pipeline.submit import submit

_RETRY_SECONDS = "1"

router = APIRouter(tags=["Evaluations"], generate_unique_id_function=operation_id)


@router.get(
    f"{PATH}/{{evaluation_id}}",
    summary="Get an evaluation",
    openapi_extra=IF_NONE_MATCH,
    responses={
        **answers(
            200,
            schema.Evaluation,
            "not_found",
            headers={"ETag": "Changes with every change of the evaluation; send it back as If-None-Match."},
            description="The evaluation as it is.",
        ),
        304: {"description": "Not changed since the ETag given as If-None-Match."},
    },
)
async def get_evaluation(
    caller: Reads, request: Request, evaluation_id: EvaluationId, query: Annotated[queries.Wait, Query()]
) -> Response:
    """Poll it, or let `wait` hold the answer back until the evaluation has ended."""
    store = caller.api.store
    if query.wait:
        waiting = read.wait(store, caller.workspace_id, evaluation_id, query.wait)
        found = await while_connected(request, waiting)
    else:
        found = await read.evaluation(store, caller.workspace_id, evaluation_id)
    headers = {"etag": etag(found.revision), "cache-control": "private, no-cache"}
    if matches(request, headers["etag"]):
        return Response(None, 304, headers)
    return json_answer(wire.evaluation(found), headers=headers)


@router.post(
    PATH,
    status_code=202,
    summary="Submit recorded conversations",
    openapi_extra=SUBMIT_BODY,
    responses=answers(
        202,
        schema.NewEvaluation,
        "receive_timeout",
        "unsupported_media_type",
        "invalid_request",
        "body_too_large",
        "idempotency_key_reused",
        "busy",
        headers={
            "Location": "Path of the evaluation.",
            "Retry-After": "Seconds after which to look at it.",
            "Idempotency-Replayed": "`true` when the Idempotency-Key was used before with this body.",
        },
        description="Stored and queued.",
    ),
)
async def submit_evaluation(caller: Submits, request: Request, _: NoQuery) -> Response:
    """All conversations are valid and stored, or none is: a 422 lists every problem and nothing was kept."""
    api = caller.api
    key = idempotency_key(request)
    async with received(request, api.limits, api.spool_dir) as body:
        submitted = await submit(
            body,
            workspace_id=caller.workspace_id,
            idempotency_key=key,
            store=api.store,
            queue=api.queue,
            intake=api.intake,
            rules=api.rules,
        )
    headers = {"location": f"{PATH}/{submitted.evaluation.id}", "retry-after": _RETRY_SECONDS}
    if submitted.replayed:
        headers["idempotency-replayed"] = "true"
    return json_answer(wire.accepted(submitted.evaluation, submitted.webhook_secret), 202, headers)


@router.get(
    PATH,
    summary="List evaluations",
    responses=answers(200, schema.EvaluationList, description="Newest first, unless asked otherwise."),
)
async def list_evaluations(caller: Reads, query: Annotated[queries.Evaluations, Query()]) -> Response:
    """Lists are cut by cursor: give a part's `last_id` as `after` to get the next one."""
    part = await read.evaluations(caller.api.store, caller.workspace_id, query.where(), query.page())
    return json_answer(wire.listing([wire.evaluation(each) for each in part.data], part.has_more))


@router.delete(
    f"{PATH}/{{evaluation_id}}",
    status_code=204,
    summary="Delete an evaluation",
    responses=answers(204, None, "not_found", description="Deleted, with everything derived from it."),
)
async def delete_evaluation(caller: Submits, evaluation_id: EvaluationId, _: NoQuery) -> Response:
    """Conversations, verdicts, findings and deliveries go with it, also while it is being worked on."""
    await cancel.delete(caller.api.store, caller.workspace_id, evaluation_id)
    return Response(None, 204)


@router.post(
    f"{PATH}/{{evaluation_id}}/cancel",
    summary="Cancel an evaluation",
    responses=answers(200, schema.Evaluation, "not_found", "already_finished", description="Canceled."),
)
async def cancel_evaluation(caller: Submits, evaluation_id: EvaluationId, _: NoQuery) -> Response:
    """What was judged stays; canceling twice is canceling once."""
    found = await cancel.cancel(caller.api.store, caller.workspace_id, evaluation_id)
    return json_answer(wire.evaluation(found))


@router.post(
    f"{PATH}/{{evaluation_id}}/rerun",
    status_code=409,
    summary="Not possible: re-run an evaluation",
    response_class=Response,
    responses=answers(409, None, "not_found", "not_rerunnable"),
)
async def rerun_evaluation(caller: Submits, evaluation_id: EvaluationId, _: NoQuery) -> Response:
    """Always refused, with the reason; submit the conversations again instead."""
    await read.evaluation(caller.api.store, caller.workspace_id, evaluation_id)
    raise ProblemError("not_rerunnable", KINDS["not_rerunnable"].meaning)


@router.get(
    f"{PATH}/{{evaluation_id}}/events",
    summary="Follow an evaluation",
    response_class=Response,
    responses=answers(
        200,
        None,
        "not_found",
        content={"text/event-stream": {"type": "string"}},
        description="Server-sent events named `evaluation`, each with the evaluation object as data; ends with it.",
    ),
)
async def follow_evaluation(caller: Reads, evaluation_id: EvaluationId, _: NoQuery) -> Response:
    """The state now, then on every change, at most twice a second; a comment when it is quiet for 15 seconds."""
    api = caller.api
    states = await started(read.changes(api.store, caller.workspace_id, evaluation_id))
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return Stream(events(states, api.limits.heartbeat_seconds), "text/event-stream", headers)


@router.get(
    f"{PATH}/{{evaluation_id}}/export",
    summary="Export an evaluation",
    response_class=Response,
    responses=answers(
        200,
        None,
        "not_found",
        content={"application/jsonl": {"type": "string"}},
        description="The evaluation, its conversations, its verdicts and its findings, one object a line.",
    ),
)
async def export_evaluation(
    caller: Reads, evaluation_id: EvaluationId, query: Annotated[queries.Export, Query()]
) -> Response:
    """Streamed; an aborted connection means that it is not complete."""
    objects = await started(read.export(caller.api.store, caller.workspace_id, evaluation_id))
    headers = {"content-disposition": f'attachment; filename="{evaluation_id}.{query.format}"'}
    return Stream(json_lines(objects), "application/jsonl", headers)
