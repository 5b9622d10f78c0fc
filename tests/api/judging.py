"""Judges what was submitted without any judge: verdicts of every shape, written as a worker would."""

from app.findings import model
from app.findings.model import Coverage, Evidence, Finding, Subject, Usage, Verdict, Votes
from app.pipeline.finish import finish
from app.storage.store import DatabaseStore

EVIDENCE = (
    Evidence("messages", 1, "/content", 0, 5, "It is"),
    Evidence("messages", 0, "", None, None, '{"role":"user"}', "context"),
)


def a_finding(severity: model.Severity, code: str = "unsaid", turn: int | None = 0) -> Finding:
    """Return a finding about event 1."""
    return Finding(code, severity, "A title", "What happened.", "Why it matters.", EVIDENCE, event=1, turn=turn)


VERDICTS = (
    Verdict(
        "soundness",
        "tool",
        "1",
        Subject(),
        "binary",
        None,
        model.passed("All is well.", findings=(a_finding("info", "remark", None),), details={"seen": {"a": [1, None]}}),
    ),
    Verdict(
        "manners",
        "output",
        "2",
        Subject("turn", turn=0),
        "1-5",
        3,
        model.failed(
            "It is rude.",
            [a_finding("high"), a_finding("low", "curt")],
            label="rude",
            score=1,
            method="llm",
            model="judge-1",
            prompt_sha256="0" * 64,
            coverage=Coverage(2, 2),
            votes=Votes(3, 2),
            disputed=True,
            dropped_findings=1,
            usage=Usage(3, 300, 200, 30, 0.25),
            attempts=3,
        ),
    ),
    Verdict("order", "tool", "1", Subject("call", 0, 1, "call_1"), "0-1", 0.5, model.not_applicable("no_calls", "")),
    Verdict("tone", "output", "1", Subject("turn", turn=0), "binary", None, model.not_scored("no_judge_model", "")),
    Verdict("facts", "output", "1", Subject(), "binary", None, model.errored("timeout", "Gave up.", method="llm")),
)


async def judge(store: DatabaseStore, evaluation_id: str, verdicts: tuple[Verdict, ...] = VERDICTS) -> None:
    """Judge every waiting conversation of an evaluation, each with the same verdicts."""
    while True:
        async with store.begin() as tx:
            ids = await tx.due(window=100, republish_after_seconds=0)
        if not ids:
            return
        for conversation_id in ids:
            async with store.begin() as tx:
                claim = await tx.claim(conversation_id, 30)
                assert claim is not None
                assert claim.evaluation_id == evaluation_id
                await tx.save_verdicts(claim.lease, verdicts)
            await finish(store, claim.lease)
