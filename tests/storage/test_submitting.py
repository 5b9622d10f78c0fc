import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from app.evaluation.model import (
    EvaluationRequest,
    EvaluationWarning,
    Options,
    Progress,
    WebhookRequest,
)
from app.findings.rollup import Tally
from app.ids import new_id
from app.judges.contract import Document, Principle, Target
from app.pipeline.values import ConversationFilter, NewEvaluation
from app.storage.sealing import Seal
from app.storage.store import DatabaseStore
from app.transcripts.model import Warning_
from tests.storage.making import (
    EVERYTHING,
    SECRET_KEY,
    WORKSPACE,
    claim_all,
    conversation,
    counts,
    sql,
    submit,
)

REQUEST = EvaluationRequest(
    name="nightly",
    metadata={"branch": "main"},
    target=Target(
        "books flights",
        (Principle("honest", "says what it did", 4, ("core",)), Principle("brief", "is short")),
        (Document("fares", "all fares", "https://example.org/fares"),),
    ),
    judges=("relevance", "tool_selection"),
    options=Options("gpt-large", 3, "last_turn", 1000, 2.5),
    webhook=WebhookRequest("https://example.org/hook"),
)
WARNINGS = (
    EvaluationWarning(None, Warning_("/name", "odd_name", "is odd")),
    EvaluationWarning(2, Warning_("/conversations/2/x", "ignored", "is ignored", 3)),
)


async def test_an_evaluation_comes_back_as_it_was_asked_for(store: DatabaseStore) -> None:
    new = NewEvaluation(new_id("feval"), WORKSPACE, REQUEST, 1, WARNINGS, "whsec_abc")
    async with store.begin() as tx:
        await tx.add_evaluation(new)
        await tx.add_conversations(WORKSPACE, new.id, [conversation(0)])
    async with store.read() as reader:
        found = await reader.evaluation(WORKSPACE, new.id)
    assert found is not None
    assert (found.name, found.metadata, found.judges) == (REQUEST.name, REQUEST.metadata, REQUEST.judges)
    assert (found.options, found.webhook_url, found.warnings) == (
        REQUEST.options,
        "https://example.org/hook",
        WARNINGS,
    )
    assert (found.status, found.result, found.started_at, found.finished_at) == ("queued", None, None, None)
    assert (found.progress, found.tally) == (Progress(1, queued=1), Tally())
    assert found.created_at.tzinfo is UTC
    assert abs(datetime.now(UTC) - found.created_at) < timedelta(seconds=60)
    [held] = await claim_all(store, new.id)
    assert held.target == REQUEST.target
    assert (held.judges, held.options, held.format, held.body) == (REQUEST.judges, REQUEST.options, "items", b"body")


async def test_a_request_may_leave_everything_out(store: DatabaseStore) -> None:
    evaluation_id = await submit(store)
    async with store.read() as reader:
        found = await reader.evaluation(WORKSPACE, evaluation_id)
    assert found is not None
    assert (found.name, found.metadata, found.webhook_url, found.warnings) == (None, None, None, ())
    assert (await claim_all(store, evaluation_id))[0].target is None


async def test_conversations_come_back_as_they_were_sent(store: DatabaseStore) -> None:
    evaluation_id = new_id("feval")
    first = conversation(
        0,
        b"\x00\xff bytes",
        client_id="mine",
        metadata={"a": [1, None, {"b": "c"}]},
        redactions=("/tools/0/headers",),
        warnings=(Warning_("/items/1", "odd", "is odd", 2),),
    )
    batch = [first, *(conversation(index, bytes([index % 251]) * index) for index in range(1, 1201))]
    async with store.begin() as tx:
        await tx.add_evaluation(NewEvaluation(evaluation_id, WORKSPACE, EvaluationRequest(), len(batch), ()))
        await tx.add_conversations(WORKSPACE, evaluation_id, batch[:3])
        await tx.add_conversations(WORKSPACE, evaluation_id, [])
        await tx.add_conversations(WORKSPACE, evaluation_id, batch[3:])
    async with store.read() as reader:
        found = await reader.conversation(WORKSPACE, evaluation_id, 0)
        bodies = [await reader.body(WORKSPACE, evaluation_id, index) for index in (0, 1, 600, 1200)]
        page = await reader.conversations(WORKSPACE, evaluation_id, ConversationFilter(), EVERYTHING)
    assert found is not None
    assert (found.client_id, found.metadata, found.redactions, found.warnings) == (
        "mine",
        {"a": [1, None, {"b": "c"}]},
        ("/tools/0/headers",),
        first.warnings,
    )
    assert (found.sha256, found.stored_sha256, found.bytes) == (first.sha256, first.stored_sha256, first.size)
    assert (found.status, found.result, found.format) == ("queued", None, "items")
    assert bodies == [batch[index].body for index in (0, 1, 600, 1200)]
    assert [one.index for one in page.data] == list(range(1000))
    assert page.has_more


async def test_nothing_of_a_failed_submission_is_kept(store: DatabaseStore) -> None:
    new = NewEvaluation(new_id("feval"), WORKSPACE, EvaluationRequest(), 2, ())
    with pytest.raises(RuntimeError, match="half-way"):  # noqa: PT012 - the transaction is what raises
        async with store.begin() as tx:
            await tx.add_evaluation(new)
            await tx.remember(WORKSPACE, "key", "b" * 64, new.id)
            await tx.add_conversations(WORKSPACE, new.id, [conversation(0)])
            raise RuntimeError("half-way")
    tables = ("evaluations", "evaluation_requests", "conversations", "conversation_bodies", "idempotency_keys")
    assert set((await counts(store, tables)).values()) == {0}


async def test_conversations_need_an_evaluation_of_the_same_workspace(store: DatabaseStore) -> None:
    evaluation_id = await submit(store)
    async with store.begin() as tx:
        with pytest.raises(ValueError, match="ws_elsewhere has no"):
            await tx.add_conversations("ws_elsewhere", evaluation_id, [conversation(1)])


async def test_a_webhook_secret_is_sealed_at_rest(store: DatabaseStore) -> None:
    new = NewEvaluation(new_id("feval"), WORKSPACE, REQUEST, 1, (), "whsec_c2VjcmV0")
    async with store.begin() as tx:
        await tx.add_evaluation(new)
    [(sealed,)] = await sql(store, "SELECT webhook_secret FROM evaluations")
    assert b"whsec" not in sealed
    assert b"c2VjcmV0" not in sealed
    assert Seal(SECRET_KEY).open(sealed) == "whsec_c2VjcmV0"
    assert SECRET_KEY not in repr(store) + repr(vars(store))


async def test_a_key_is_found_by_its_hash_until_it_is_revoked(store: DatabaseStore) -> None:
    digest = "ab" * 32
    for name in ("first", "again"):
        async with store.begin() as tx:
            await tx.ensure_key(digest, name=name, workspace_id="ws_new", scopes={"read", "write"})
    async with store.read() as reader:
        key = await reader.find_key(digest)
        assert await reader.find_key("cd" * 32) is None
    assert key is not None
    assert (key.workspace_id, sorted(key.scopes)) == ("ws_new", ["read", "write"])
    assert await sql(store, "SELECT name FROM api_keys WHERE key_sha256 = :digest", digest=digest) == [("first",)]
    await sql(store, "UPDATE api_keys SET revoked_at = created_at WHERE key_sha256 = :digest", digest=digest)
    async with store.read() as reader:
        assert await reader.find_key(digest) is None


async def test_an_idempotency_key_has_one_winner(store: DatabaseStore) -> None:
    async def attempt(number: int) -> tuple[str, tuple[str, str]]:
        new = NewEvaluation(new_id("feval"), WORKSPACE, EvaluationRequest(), 1, ())
        async with store.begin() as tx:
            await tx.add_evaluation(new)
            return new.id, await tx.remember(WORKSPACE, "the key", f"{number:064}", new.id)

    answers = await asyncio.gather(*(attempt(number) for number in range(8)))
    bound = {answer for _, answer in answers}
    assert len(bound) == 1
    [(body_sha256, winner)] = bound
    assert winner in {own for own, _ in answers}
    async with store.read() as reader:
        assert await reader.idempotent(WORKSPACE, "the key") == (body_sha256, winner)
        assert await reader.idempotent(WORKSPACE, "another") is None
        assert await reader.idempotent("ws_elsewhere", "the key") is None


async def test_an_idempotency_key_is_free_again_when_its_first_user_failed(store: DatabaseStore) -> None:
    holds = asyncio.Event()

    async def fails() -> None:
        new = NewEvaluation(new_id("feval"), WORKSPACE, EvaluationRequest(), 1, ())
        async with store.begin() as tx:
            await tx.add_evaluation(new)
            await tx.remember(WORKSPACE, "k", "a" * 64, new.id)
            holds.set()
            await asyncio.sleep(0.1)
            raise RuntimeError

    async def succeeds() -> str:
        await holds.wait()
        new = NewEvaluation(new_id("feval"), WORKSPACE, EvaluationRequest(), 1, ())
        async with store.begin() as tx:
            await tx.add_evaluation(new)
            assert await tx.remember(WORKSPACE, "k", "b" * 64, new.id) == ("b" * 64, new.id)
        return new.id

    _, own = await asyncio.gather(fails(), succeeds(), return_exceptions=True)
    async with store.read() as reader:
        assert await reader.idempotent(WORKSPACE, "k") == ("b" * 64, own)
