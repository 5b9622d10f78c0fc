"""Read: everything a client can see, always within its workspace."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol, TypeVar

import zstandard

from app.evaluation.model import Conversation, Evaluation, StoredFinding, StoredVerdict
from app.pipeline.errors import NotFoundError
from app.pipeline.ports import Intake, Reader, Store
from app.pipeline.values import ConversationFilter, EvaluationFilter, FindingFilter, Page, Slice, VerdictFilter

POLL_SECONDS = 0.5
"""How often a waiting client's evaluation is looked at: one primary-key read."""
_EXPORT_PAGE = 100


class _HasId(Protocol):
    @property
    def id(self) -> str: ...


_Listed = TypeVar("_Listed", bound=_HasId)


async def evaluation(store: Store, workspace_id: str, evaluation_id: str) -> Evaluation:
    """Return an evaluation.

    Raises:
        NotFoundError: no such evaluation here.
    """
    async with store.read() as reader:
        return await _known(reader, workspace_id, evaluation_id)


async def evaluations(store: Store, workspace_id: str, where: EvaluationFilter, page: Page) -> Slice[Evaluation]:
    """Return some of a workspace's evaluations. Raises CursorError."""
    async with store.read() as reader:
        return await reader.evaluations(workspace_id, where, page)


async def wait(store: Store, workspace_id: str, evaluation_id: str, seconds: float) -> Evaluation:
    """Return an evaluation as soon as it has ended, or as it is after ``seconds``. Raises NotFoundError."""
    deadline = time.monotonic() + seconds
    while True:
        found = await evaluation(store, workspace_id, evaluation_id)
        left = deadline - time.monotonic()
        if found.finished or left <= 0:
            return found
        await asyncio.sleep(min(POLL_SECONDS, left))


async def changes(store: Store, workspace_id: str, evaluation_id: str) -> AsyncIterator[Evaluation]:
    """Yield an evaluation as it is and then whenever it has changed, at most twice a second, until it has ended.

    Ends without a further word when the evaluation is deleted. Raises NotFoundError at the start only.
    """
    found = await evaluation(store, workspace_id, evaluation_id)
    yield found
    while not found.finished:
        await asyncio.sleep(POLL_SECONDS)
        try:
            current = await evaluation(store, workspace_id, evaluation_id)
        except NotFoundError:
            return
        if current.revision != found.revision:
            yield current
        found = current


async def conversations(
    store: Store, workspace_id: str, evaluation_id: str, where: ConversationFilter, page: Page
) -> Slice[Conversation]:
    """Return some of an evaluation's conversations. Raises NotFoundError, CursorError."""
    async with store.read() as reader:
        await _known(reader, workspace_id, evaluation_id)
        return await reader.conversations(workspace_id, evaluation_id, where, page)


async def conversation(
    store: Store, intake: Intake, workspace_id: str, evaluation_id: str, index: int
) -> tuple[Conversation, bytes]:
    """Return a conversation and the JSON object {events, calls, catalogue, warnings} of its normalised form.

    Raises:
        NotFoundError: no such conversation here.
    """
    found, body = await _stored(store, workspace_id, evaluation_id, index)
    return found, await intake.present(body, found.warnings)


async def original(store: Store, workspace_id: str, evaluation_id: str, index: int) -> tuple[Conversation, bytes]:
    """Return a conversation and its bytes as they are kept. Raises NotFoundError."""
    found, body = await _stored(store, workspace_id, evaluation_id, index)
    return found, await asyncio.to_thread(zstandard.decompress, body)


async def verdicts(
    store: Store, workspace_id: str, evaluation_id: str, where: VerdictFilter, page: Page
) -> Slice[StoredVerdict]:
    """Return some of an evaluation's verdicts. Raises NotFoundError, CursorError."""
    async with store.read() as reader:
        await _known(reader, workspace_id, evaluation_id)
        return await reader.verdicts(workspace_id, evaluation_id, where, page)


async def findings(
    store: Store, workspace_id: str, evaluation_id: str, where: FindingFilter, page: Page
) -> Slice[StoredFinding]:
    """Return some of an evaluation's findings. Raises NotFoundError, CursorError."""
    async with store.read() as reader:
        await _known(reader, workspace_id, evaluation_id)
        return await reader.findings(workspace_id, evaluation_id, where, page)


Exported = Evaluation | Conversation | StoredVerdict | StoredFinding


async def export(store: Store, workspace_id: str, evaluation_id: str) -> AsyncIterator[Exported]:
    """Yield the evaluation, then its conversations, verdicts and findings, a page of each in memory at most.

    Raises:
        NotFoundError: at the start only.
    """
    yield await evaluation(store, workspace_id, evaluation_id)
    async for one in _pages(lambda page: conversations(store, workspace_id, evaluation_id, ConversationFilter(), page)):
        yield one
    async for two in _pages(lambda page: verdicts(store, workspace_id, evaluation_id, VerdictFilter(), page)):
        yield two
    async for three in _pages(lambda page: findings(store, workspace_id, evaluation_id, FindingFilter(), page)):
        yield three


async def _pages(read: Callable[[Page], Awaitable[Slice[_Listed]]]) -> AsyncIterator[_Listed]:
    after: str | None = None
    while True:
        part = await read(Page(_EXPORT_PAGE, after))
        for one in part.data:
            yield one
        if not part.has_more:
            return
        after = part.data[-1].id


async def _known(reader: Reader, workspace_id: str, evaluation_id: str) -> Evaluation:
    found = await reader.evaluation(workspace_id, evaluation_id)
    if found is None:
        raise NotFoundError
    return found


async def _stored(store: Store, workspace_id: str, evaluation_id: str, index: int) -> tuple[Conversation, bytes]:
    async with store.read() as reader:
        found = await reader.conversation(workspace_id, evaluation_id, index)
        body = await reader.body(workspace_id, evaluation_id, index)
    if found is None or body is None:
        raise NotFoundError
    return found, body
