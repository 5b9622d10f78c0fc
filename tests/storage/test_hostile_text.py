from typing import Any

import pytest

from app.evaluation.model import EvaluationRequest, EvaluationWarning
from app.findings.model import Evidence, Finding, Subject, failed
from app.ids import new_id
from app.judges.contract import Document, Target
from app.pipeline.values import FindingFilter, NewEvaluation, VerdictFilter
from app.storage.store import DatabaseStore
from app.transcripts.model import Warning_
from tests.storage.making import (
    EVERYTHING,
    WORKSPACE,
    claim_all,
    conversation,
    conversation_ids,
    finding,
    save,
    verdict,
)

HOSTILE = {
    "NUL": ("a\0b", "a\ufffdb"),
    "lone surrogates": ("\ud800x\udfff", "\ufffdx\ufffd"),
    "reversed pair": ("\udc00\ud83d", "\ufffd\ufffd"),
    "emoji": ("ok \U0001f469\u200d\U0001f680 \U0001f600", None),
    "an escape spelled out": (r"\u0000 \\u0000 \ud800", None),
    "quotes and controls": ("'\"; DROP TABLE verdicts; --\x01\x1b[31m\r\n\x7f", None),
    "line separators": ("\u2028\u2029\ufeff\u202e", None),
    "a megabyte": (("é\U0001f600 " + "0123456789" * 100) * 1_000, None),
}


@pytest.mark.parametrize(("text", "expected"), HOSTILE.values(), ids=HOSTILE.keys())
async def test_text_of_clients_and_models_comes_back_storable(
    store: DatabaseStore, text: str, expected: str | None
) -> None:
    expected = text if expected is None else expected
    nested: dict[str, Any] = {"k": [text, {text: text}]}
    evaluation_id = new_id("feval")
    request = EvaluationRequest(
        name=text, metadata={text: text}, target=Target(text, (), (Document(text, text),)), judges=("relevance",)
    )
    warning = EvaluationWarning(None, Warning_(text, "odd", text))
    sent = conversation(0, text.encode("utf-8", "surrogatepass"), client_id=text, metadata=nested)
    async with store.begin() as tx:
        await tx.add_evaluation(NewEvaluation(evaluation_id, WORKSPACE, request, 1, (warning,)))
        assert await tx.remember(WORKSPACE, text, "a" * 64, evaluation_id) == ("a" * 64, evaluation_id)
        await tx.add_conversations(WORKSPACE, evaluation_id, [sent])
    [held] = await claim_all(store, evaluation_id)
    assert held.target == Target(expected, (), (Document(expected, expected),))
    bad = Finding(text, "high", text, text, text, (Evidence("items", 0, text, 0, 1, text),), 3)
    decision = failed(text, [bad], label=text, model=text, details=nested)
    subject = Subject("call", 1, 3, text, text)
    assert await save(store, held, [verdict(text, decision, version=text, subject=subject)])
    assert await save(store, held, [verdict(text, decision, version=text, subject=subject)])
    async with store.read() as reader:
        evaluation = await reader.evaluation(WORKSPACE, evaluation_id)
        found = await reader.conversation(WORKSPACE, evaluation_id, 0)
        body = await reader.body(WORKSPACE, evaluation_id, 0)
        where = VerdictFilter(dimension=(text, "other"))
        [stored] = (await reader.verdicts(WORKSPACE, evaluation_id, where, EVERYTHING)).data
        [one] = (await reader.findings(WORKSPACE, evaluation_id, FindingFilter(code=(text,)), EVERYTHING)).data
        assert await reader.idempotent(WORKSPACE, text) == ("a" * 64, evaluation_id)
    assert evaluation is not None
    assert (evaluation.name, evaluation.metadata) == (expected, {expected: expected})
    assert evaluation.warnings == (EvaluationWarning(None, Warning_(expected, "odd", expected)),)
    assert found is not None
    assert (found.client_id, found.metadata) == (expected, {"k": [expected, {expected: expected}]})
    assert body == sent.body
    got = stored.verdict
    assert (got.dimension, got.judge_version, got.subject) == (
        expected,
        expected,
        Subject("call", 1, 3, expected, expected),
    )
    assert (got.decision.rationale, got.decision.label, got.decision.details) == (
        expected,
        expected,
        {"k": [expected, {expected: expected}]},
    )
    assert one.finding == Finding(
        expected, "high", expected, expected, expected, (Evidence("items", 0, expected, 0, 1, expected),), 3
    )


async def test_long_subjects_are_told_apart(store: DatabaseStore) -> None:
    """The key that makes a verdict unique is a client's text of any length, too long for an index."""
    evaluation_id = new_id("feval")
    async with store.begin() as tx:
        await tx.add_evaluation(NewEvaluation(evaluation_id, WORKSPACE, EvaluationRequest(), 1, ()))
        await tx.add_conversations(WORKSPACE, evaluation_id, [conversation(0)])
    [held] = await claim_all(store, evaluation_id, -1)
    pointers = [f"/expectations/{'x' * 100_000}{number}" for number in range(3)]
    for _ in range(2):
        await save(
            store,
            held,
            [
                verdict("expectation.custom", failed("bad", [finding()]), subject=Subject(expectation=pointer))
                for pointer in pointers
            ],
        )
    [again] = await claim_all(store, evaluation_id)
    assert again.done == {("expectation.custom", f"conversation@{pointer}", "1") for pointer in pointers}
    assert len(await conversation_ids(store, evaluation_id)) == 1
