"""The ports: what the pipeline needs from the world, named by role. Adapters live beside it, fakes in the tests."""

from collections.abc import Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol

from app.evaluation.model import Conversation, Evaluation, NewConversation, Status, StoredFinding, StoredVerdict
from app.findings.model import Usage, Verdict
from app.findings.rollup import Result, Tally
from app.pipeline.values import (
    Admitted,
    ApiKey,
    Body,
    Claim,
    Closing,
    ConversationFilter,
    EvaluationFilter,
    FindingFilter,
    Lease,
    NewEvaluation,
    Page,
    Rules,
    Slice,
    VerdictFilter,
)
from app.transcripts.model import Warning_


class Intake(Protocol):
    """Reads bodies: all of a request's conversations are valid, or all of its problems are told."""

    def admit(self, body: Body, rules: Rules) -> AbstractAsyncContextManager[Admitted]:
        """Validate a whole body without blocking the event loop.

        Raises:
            RefusedError: on entering, with the problems in document order.
            BusyError: when too many bytes are already in flight.
        """
        ...

    async def present(self, stored: bytes, known: Sequence[Warning_] = ()) -> bytes:
        """Return the JSON object {events, calls, catalogue, warnings} of a stored (compressed) conversation.

        ``known`` are the warnings it was stored with; they are among those returned.
        """
        ...


class Reader(Protocol):
    """Reads inside one consistent transaction. Every method that takes a workspace sees only what is its own."""

    async def find_key(self, key_sha256: str) -> ApiKey | None:
        """Return the live API key with this hash."""
        ...

    async def evaluation(self, workspace_id: str, evaluation_id: str) -> Evaluation | None:
        """Return an evaluation; one primary-key read."""
        ...

    async def evaluations(self, workspace_id: str, where: EvaluationFilter, page: Page) -> Slice[Evaluation]:
        """Return evaluations by creation.

        Raises:
            CursorError: ``page.after`` is not the id of one of this workspace's evaluations.
        """
        ...

    async def conversation(self, workspace_id: str, evaluation_id: str, index: int) -> Conversation | None:
        """Return a conversation without its body."""
        ...

    async def body(self, workspace_id: str, evaluation_id: str, index: int) -> bytes | None:
        """Return the compressed stored bytes of a conversation."""
        ...

    async def conversations(
        self, workspace_id: str, evaluation_id: str, where: ConversationFilter, page: Page
    ) -> Slice[Conversation]:
        """Return conversations by index. Raises CursorError."""
        ...

    async def verdicts(
        self, workspace_id: str, evaluation_id: str, where: VerdictFilter, page: Page
    ) -> Slice[StoredVerdict]:
        """Return verdicts (their decisions without findings) by conversation, event and id. Raises CursorError."""
        ...

    async def findings(
        self, workspace_id: str, evaluation_id: str, where: FindingFilter, page: Page
    ) -> Slice[StoredFinding]:
        """Return findings by conversation, event and id. Raises CursorError."""
        ...

    async def idempotent(self, workspace_id: str, key: str) -> tuple[str, str] | None:
        """Return (body sha256, evaluation id) remembered under an Idempotency-Key."""
        ...


class Transaction(Reader, Protocol):
    """Writes that are kept together or not at all. All times are the database's."""

    async def ensure_key(self, key_sha256: str, *, name: str, workspace_id: str, scopes: Collection[str]) -> None:
        """Make a key, by its hash, the one live key of its name in the workspace; makes the workspace if need be."""
        ...

    async def remember(self, workspace_id: str, key: str, body_sha256: str, evaluation_id: str) -> tuple[str, str]:
        """Bind an Idempotency-Key; return the (body sha256, evaluation id) that now stands there.

        Concurrent transactions with one key wait for each other, so one of them wins and all see the winner.
        Must be called after ``add_evaluation`` of the same transaction.
        """
        ...

    async def add_evaluation(self, new: NewEvaluation) -> None:
        """Insert an evaluation in state queued, all of its ``total`` conversations queued and remaining."""
        ...

    async def add_conversations(self, workspace_id: str, evaluation_id: str, batch: Sequence[NewConversation]) -> None:
        """Insert conversations, each a work item due now. A bulk path: COPY where there is one."""
        ...

    async def due(self, *, window: int, republish_after_seconds: float) -> list[str]:
        """Mark queued conversations as published and return their ids, at most what is free of ``window``.

        Due: ``next_run_at`` has come, and never published or published too long ago. The window counts those
        published and not yet claimed. Smallest index first, so that evaluations take turns. SKIP LOCKED.
        """
        ...

    async def unpublish(self, conversation_ids: Sequence[str]) -> None:
        """Take back the mark of ``due`` from conversations still queued: ringing for them failed."""
        ...

    async def claim(self, conversation_id: str, lease_seconds: float) -> Claim | None:
        """Take a queued and due conversation, or one whose lease ran out; None when there is nothing to take.

        Counts the attempt, moves the evaluation's progress, and starts the evaluation with its first conversation.
        """
        ...

    async def extend(self, lease: Lease, lease_seconds: float) -> bool:
        """Prolong a lease; False when it is no longer ours."""
        ...

    async def save_verdicts(self, lease: Lease, verdicts: Sequence[Verdict]) -> bool:
        """Store verdicts and their findings, each (dimension, subject, version) once; False when fenced out."""
        ...

    async def put_back(self, lease: Lease, *, delay_seconds: float, burn_attempt: bool, usage: Usage = Usage()) -> bool:
        """Return a conversation to the queue, due after a delay; False when fenced out.

        ``usage`` is what was paid for questions that are asked again later; the evaluation counts it.
        """
        ...

    async def expired(self, *, max_attempts: int, lease_seconds: float, limit: int = 50) -> list[Claim]:
        """Deal with leases that ran out: put back those with attempts left, and take over the others.

        Returns the taken-over ones under a lease of the caller's, to be finished as failed.
        """
        ...

    async def conversation_tally(self, lease: Lease) -> Tally | None:
        """Lock the conversation and return the tally of all its stored verdicts; None when fenced out."""
        ...

    async def finish_conversation(
        self, lease: Lease, status: Literal["completed", "failed"], result: Result | None, tally: Tally
    ) -> Closing | None:
        """End a conversation and add its tally to the evaluation's; None when fenced out."""
        ...

    async def close_evaluation(
        self, evaluation_id: str, status: Status, result: Result | None, reason: str | None
    ) -> None:
        """Set the final state. Called in the transaction in which ``remaining`` reached zero."""
        ...

    async def add_delivery(self, evaluation_id: str, event_type: str) -> None:
        """Write the webhook delivery row (once per evaluation and type), if the evaluation has a webhook."""
        ...

    async def cancel(self, workspace_id: str, evaluation_id: str) -> Status | None:
        """Cancel whatever has not ended, and return the status found before (None: no such evaluation).

        A final status found changes nothing. Leases are voided, so that work under way is fenced out.
        """
        ...

    async def delete(self, workspace_id: str, evaluation_id: str) -> bool:
        """Delete an evaluation and everything derived from it; False when there is none."""
        ...


class Store(Protocol):
    """The database is the truth."""

    def begin(self) -> AbstractAsyncContextManager[Transaction]:
        """Open a write transaction: committed on leaving, rolled back on an exception.

        Raises:
            StoreUnavailableError: the database does not answer.
        """
        ...

    def read(self) -> AbstractAsyncContextManager[Reader]:
        """Open a read transaction. Raises StoreUnavailableError."""
        ...

    async def check(self) -> None:
        """Return when the database answers and its schema is current. Raises StoreUnavailableError."""
        ...


class Queue(Protocol):
    """A doorbell: it may lose what it was told, repeat it or be away; the database knows what is due."""

    async def judge(self, conversation_ids: Sequence[str]) -> None:
        """Ask for conversations to be judged. Asking twice is asking once.

        Raises:
            QueueUnavailableError: within about two seconds, when nobody listens.
        """
        ...

    async def length(self) -> int:
        """Return how many rings have not been answered for, jobs under way included. Raises QueueUnavailableError."""
        ...

    async def check(self) -> None:
        """Return when the queue answers and would not drop work. Raises QueueUnavailableError."""
        ...
