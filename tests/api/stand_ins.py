"""Collaborators for tests of the HTTP layer: complete, small, and honest about what the real ones promise."""

import asyncio
import contextlib
import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import zstandard

from app.evaluation.model import EvaluationRequest, EvaluationWarning, NewConversation, WebhookRequest
from app.pipeline.errors import Problem, QueueUnavailableError, RefusedError, StoreUnavailableError
from app.pipeline.values import Admitted, ApiKey, Body, Rules
from app.transcripts.model import Warning_

KEY = "fk_test_0123456789abcdef"


class KeyStore:
    """A store that knows one key and nothing else, for what ends before anything is stored."""

    @contextlib.asynccontextmanager
    async def read(self) -> AsyncIterator["KeyStore"]:
        yield self

    async def find_key(self, key_sha256: str) -> ApiKey | None:
        known = hashlib.sha256(KEY.encode()).hexdigest() == key_sha256
        return ApiKey("key_1", "ws_default", frozenset({"submit", "read"})) if known else None

    async def check(self) -> None:
        return None


class AwayStore:
    """A store whose database does not answer."""

    def read(self) -> Any:
        raise StoreUnavailableError

    async def check(self) -> None:
        raise StoreUnavailableError


class SilentStore(KeyStore):
    """A store that answers nobody any more, without saying so."""

    async def check(self) -> None:
        await asyncio.sleep(60)


class QuietQueue:
    """A doorbell nobody hears; remembers who was rung for."""

    def __init__(self) -> None:
        self.rung: list[str] = []

    async def judge(self, conversation_ids: Sequence[str]) -> None:
        self.rung += conversation_ids

    async def length(self) -> int:
        return len(self.rung)

    async def check(self) -> None:
        return None


class AwayQueue:
    """A queue that is not there."""

    async def judge(self, conversation_ids: Sequence[str]) -> None:
        raise QueueUnavailableError

    async def length(self) -> int:
        raise QueueUnavailableError

    async def check(self) -> None:
        raise QueueUnavailableError


class RefusingIntake:
    """Refuses every body, after looking at it: for tests of what happens on the way here."""

    def __init__(
        self, problems: Sequence[Problem] = (Problem("", "json_invalid", "no"),), count: int | None = 1
    ) -> None:
        self.problems = problems
        self.count = count
        self.sizes: list[int] = []
        self.paths: list[str] = []

    def admit(self, body: Body, rules: Rules) -> AbstractAsyncContextManager[Admitted]:
        data = _data(body)
        assert (len(data), hashlib.sha256(data).hexdigest()) == (body.size, body.sha256)
        self.sizes.append(body.size)
        if body.path is not None:
            self.paths.append(body.path)
        raise RefusedError(self.problems, self.count)

    async def present(self, stored: bytes, known: Sequence[Warning_] = ()) -> bytes:
        raise AssertionError("nothing was admitted, so there is nothing to present")


class TrustingIntake:
    """Takes any JSON object with ``conversations``; presents as little as the contract allows."""

    @contextlib.asynccontextmanager
    async def admit(self, body: Body, rules: Rules) -> AsyncIterator[Admitted]:
        asked = json.loads(_data(body))
        webhook = WebhookRequest(**asked["webhook"]) if "webhook" in asked else None
        request = EvaluationRequest(
            asked.get("name"), asked.get("metadata"), judges=tuple(asked.get("judges", rules.judges)), webhook=webhook
        )
        new = [_new(index, one) for index, one in enumerate(asked["conversations"])]
        warning = EvaluationWarning(0, Warning_("/messages/0", "ignored", "is ignored", 2))
        yield Admitted(request, len(new), (warning,) if asked.get("name") == "warn" else (), _in_twos(new))

    async def present(self, stored: bytes, known: Sequence[Warning_] = ()) -> bytes:
        messages = json.loads(zstandard.decompress(stored)).get("messages", [])
        events = [
            {"index": index, "kind": each["role"], "turn": 0, "text": each["content"]}
            for index, each in enumerate(messages)
        ]
        return json.dumps({"events": events, "calls": [], "catalogue": [], "warnings": []}).encode()


async def _in_twos(new: Sequence[NewConversation]) -> AsyncIterator[Sequence[NewConversation]]:
    for start in range(0, len(new), 2):
        yield new[start : start + 2]


def _new(index: int, conversation: dict[str, Any]) -> NewConversation:
    raw = json.dumps(conversation).encode()
    sha256 = hashlib.sha256(raw).hexdigest()
    return NewConversation(
        index,
        "messages" if "messages" in conversation else "items",
        zstandard.compress(raw),
        len(raw),
        sha256,
        sha256,
        conversation.get("id"),
        conversation.get("metadata"),
    )


def _data(body: Body) -> bytes:
    return Path(body.path).read_bytes() if body.path is not None else body.data or b""
