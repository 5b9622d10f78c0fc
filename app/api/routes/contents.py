"""What is in an evaluation: conversations, verdicts, findings."""

import base64
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from app.api import queries, wire
from app.api.access import Reads
from app.api.queries import ConversationIndex, EvaluationId
from app.api.routes.answering import NoQuery, json_answer, operation_id
from app.api.schema import contents as schema
from app.api.schema.answers import answers
from app.api.schema.document import SUBMIT_PATH
from app.pipeline import read

PATH = f"{SUBMIT_PATH}/{{evaluation_id}}"

router = APIRouter(tags=["Results"], generate_unique_id_function=operation_id)


@router.get(
    f"{PATH}/conversations",
    summary="List conversations",
    responses=answers(200, schema.ConversationList, "not_found", description="In the order of the request."),
)
async def list_conversations(
    caller: Reads, evaluation_id: EvaluationId, query: Annotated[queries.Conversations, Query()]
) -> Response:
    """Without their content, which is at `/conversations/{index}`."""
    part = await read.conversations(caller.api.store, caller.workspace_id, evaluation_id, query.where(), query.page())
    return json_answer(wire.listing([wire.conversation(each) for each in part.data], part.has_more))


@router.get(
    f"{PATH}/conversations/{{index:index}}",
    summary="Get a conversation",
    responses=answers(200, schema.ConversationContent, "not_found", description="The normalised conversation."),
)
async def get_conversation(
    caller: Reads, evaluation_id: EvaluationId, index: ConversationIndex, _: NoQuery
) -> Response:
    """Its events, tool calls and tool catalogue, as every judge sees them."""
    api = caller.api
    found, content = await read.conversation(api.store, api.intake, caller.workspace_id, evaluation_id, index)
    return Response(wire.presented(found, content), media_type="application/json")


@router.get(
    f"{PATH}/conversations/{{index:index}}/original",
    summary="Get a conversation as it was sent",
    response_class=Response,
    responses=answers(
        200,
        None,
        "not_found",
        content={"application/json": {"type": "object", "description": "The conversation, byte for byte as sent."}},
        headers={"Repr-Digest": "SHA-256 of the body (RFC 9530): `stored_sha256` in base64."},
        description="The bytes that are kept; credentials in tool definitions are redacted.",
    ),
)
async def get_original(caller: Reads, evaluation_id: EvaluationId, index: ConversationIndex, _: NoQuery) -> Response:
    """This is the evidence: what findings cite is cut from it."""
    found, stored = await read.original(caller.api.store, caller.workspace_id, evaluation_id, index)
    digest = base64.b64encode(bytes.fromhex(found.stored_sha256)).decode()
    return Response(stored, headers={"repr-digest": f"sha-256=:{digest}:"}, media_type="application/json")


@router.get(
    f"{PATH}/verdicts",
    summary="List verdicts",
    responses=answers(200, schema.VerdictList, "not_found", description="By conversation and event."),
)
async def list_verdicts(
    caller: Reads, evaluation_id: EvaluationId, query: Annotated[queries.Verdicts, Query()]
) -> Response:
    """What every judge said about every subject. They appear as conversations are judged."""
    part = await read.verdicts(caller.api.store, caller.workspace_id, evaluation_id, query.where(), query.page())
    return json_answer(wire.listing([wire.verdict(each) for each in part.data], part.has_more))


@router.get(
    f"{PATH}/findings",
    summary="List findings",
    responses=answers(200, schema.FindingList, "not_found", description="By conversation and event."),
)
async def list_findings(
    caller: Reads, evaluation_id: EvaluationId, query: Annotated[queries.Findings, Query()]
) -> Response:
    """Every violation with its evidence. They appear as conversations are judged."""
    part = await read.findings(caller.api.store, caller.workspace_id, evaluation_id, query.where(), query.page())
    return json_answer(wire.listing([wire.finding(each) for each in part.data], part.has_more))
