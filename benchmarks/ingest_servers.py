"""The two servers of the ingest benchmark: ours with a store that keeps nothing, and the obvious FastAPI endpoint.

Run as ``python -m benchmarks.ingest_servers ours|naive PORT``. Both also answer ``GET /ping``.
"""

import contextlib
import hashlib
import sys
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, cast

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from app.api.application import create_api
from app.api.collaborators import Collaborators
from app.evaluation.model import Evaluation, NewConversation, Progress
from app.findings.rollup import Tally
from app.intake.process_intake import ProcessIntake
from app.judges.catalogue import JUDGES
from app.pipeline.ports import Store
from app.pipeline.values import ApiKey, NewEvaluation, Rules

KEY = "fk_bench_0123456789abcdef"
SUBMIT = {"ours": "/v1/forensic-evaluations", "naive": "/submit"}
IN_FLIGHT_BYTES = 1 << 28


class _Forgetful:
    """A store that takes everything and keeps nothing but the number of conversations."""

    def __init__(self) -> None:
        self._new: NewEvaluation | None = None

    @contextlib.asynccontextmanager
    async def begin(self) -> AsyncIterator["_Forgetful"]:
        yield self

    read = begin

    async def find_key(self, key_sha256: str) -> ApiKey | None:
        known = hashlib.sha256(KEY.encode()).hexdigest() == key_sha256
        return ApiKey("key", "ws_default", frozenset({"submit", "read"})) if known else None

    async def add_evaluation(self, new: NewEvaluation) -> None:
        self._new = new

    async def add_conversations(self, workspace: str, evaluation: str, batch: Sequence[NewConversation]) -> None:
        return None

    async def due(self, **_: Any) -> list[str]:
        return []

    async def evaluation(self, workspace_id: str, evaluation_id: str) -> Evaluation | None:
        if self._new is None:
            return None
        request = self._new.request
        return Evaluation(
            evaluation_id,
            workspace_id,
            request.name,
            request.metadata,
            "queued",
            None,
            None,
            datetime.now(UTC),
            None,
            None,
            Progress(self._new.total, queued=self._new.total),
            Tally(),
            request.judges,
            request.options,
            None,
            self._new.warnings,
        )


class _Deaf:
    """A queue nobody listens to."""

    async def judge(self, conversation_ids: Sequence[str]) -> None:
        return None

    async def length(self) -> int:
        return 0

    async def check(self) -> None:
        return None


def ours() -> FastAPI:
    """Return the real API on the real intake."""

    @contextlib.asynccontextmanager
    async def opened() -> AsyncIterator[Collaborators]:
        async with contextlib.aclosing(ProcessIntake(in_flight_bytes=IN_FLIGHT_BYTES)) as intake:
            rules = Rules({judge.name: judge.default for judge in JUDGES})
            yield Collaborators(cast(Store, _Forgetful()), _Deaf(), intake, rules, JUDGES)

    return create_api(opened)


class _ChatMessage(BaseModel):
    role: Literal["user", "assistant"]
    content: Annotated[str, Field(min_length=1)]


class _Chat(BaseModel):
    messages: Annotated[list[_ChatMessage], Field(min_length=1)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow")
    type: str
    text: str | None = None


class _MessageItem(BaseModel):
    type: Literal["message"]
    role: str
    content: str | list[_Part]


class _CallItem(BaseModel):
    type: Literal["function_call"]
    call_id: str
    name: str
    arguments: str


class _OutputItem(BaseModel):
    type: Literal["function_call_output"]
    call_id: str
    output: Any


class _OtherItem(BaseModel):
    model_config = ConfigDict(extra="allow")
    type: Annotated[str, Field(min_length=1)]


class _Tool(BaseModel):
    model_config = ConfigDict(extra="allow")
    type: str
    name: str | None = None
    description: str | None = None
    parameters: dict[str, Any] | None = None


class _Responses(BaseModel):
    items: Annotated[list[_MessageItem | _CallItem | _OutputItem | _OtherItem], Field(min_length=1)]
    tools: list[_Tool] | None = None


class _Submission(BaseModel):
    conversations: Annotated[list[_Chat | _Responses], Field(min_length=1)]


def naive() -> FastAPI:
    """Return what one would write first: nested models and a body parameter."""
    app = FastAPI()

    @app.post(SUBMIT["naive"], status_code=202)
    async def submit(submission: _Submission) -> dict[str, int]:
        return {"conversations": len(submission.conversations)}

    return app


async def _pong(_: Request) -> PlainTextResponse:
    return PlainTextResponse("pong")


def main() -> None:
    """Serve."""
    app = {"ours": ours, "naive": naive}[sys.argv[1]]()
    app.router.add_route("/ping", _pong)
    uvicorn.run(app, port=int(sys.argv[2]), log_level="warning", access_log=False)


if __name__ == "__main__":
    main()
