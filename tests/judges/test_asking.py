"""How much of a model's answer is believed: what can be found in the recording, and nothing else."""

import json
import time
from dataclasses import replace
from typing import Any

import pytest

from app.findings.model import Decision
from app.judges.asking import ask
from app.judges.question import RULES, Fault, Level, Question
from tests.judges.scripted import NONCE, ScriptedModel, bench_with, case_of, finding, says
from tests.judges.test_render import ATTACKS, recording, structure

QUESTION = Question(
    dimension="manners",
    text="Was the agent polite?",
    levels=(Level("pass", "it was", passed=True), Level("fail", "it was not", passed=False)),
    faults={
        "rude": Fault("medium", "Rude words", "The user is hurt.", meaning="a rude word"),
        "curt": Fault("info", "A short answer", "Nobody minds.", meaning="an answer of one word"),
    },
)
CASE = case_of(
    {
        "items": [
            {"type": "message", "role": "user", "content": "Where is my order A1?\nPlease be quick."},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "What a nuisance, this user."}]},
            {"type": "function_call", "call_id": "c", "name": "lookup_order", "arguments": '{"order_id": "A1"}'},
            {"type": "function_call_output", "call_id": "c", "output": "on its way\u200b to you"},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Don\u2019t bother me.  It is on its way."}],
            },
        ]
    }
)


async def asked(model: ScriptedModel, question: Question = QUESTION, **rest: Any) -> Decision:
    return await ask(question, CASE, bench_with(model), **rest)


async def test_the_prompt_begins_with_what_all_judges_share() -> None:
    model = says("pass")
    await asked(model, about="About the reply.")
    (prompt,) = model.prompts
    assert prompt.system == RULES
    assert prompt.transcript.startswith(f"<transcript {NONCE}>\n[e0 user turn 0]\n  Where is my order A1?\n  Please")
    assert prompt.question.startswith("About the reply.\n\nQuestion: Was the agent polite?")
    for said in ("pass: it was", "fail: it was not", "cannot_determine", "rude: a rude word"):
        assert f"- {said}" in prompt.question
    assert list(prompt.answer_schema["properties"]) == ["reasoning", "label", "findings"]
    assert next(iter(prompt.answer_schema["properties"]["findings"]["items"]["properties"])) == "evidence"


async def test_a_fault_with_its_words_fails() -> None:
    decision = await asked(says("fail", finding(4, "Don't bother me. It is", "rude")))
    assert (decision.status, decision.passed, decision.label) == ("scored", False, "fail")
    assert (decision.model, decision.method, decision.attempts, decision.usage.prompt_tokens) == (
        "scripted",
        "llm",
        1,
        100,
    )
    assert decision.coverage is not None
    assert (decision.coverage.events_seen, decision.coverage.events_total) == (5, 5)
    (found,) = decision.findings
    assert (found.code, found.severity, found.title, found.why_it_matters) == (
        "rude",
        "medium",
        "Rude words",
        "The user is hurt.",
    )
    assert (found.event, found.turn, found.description) == (4, 0, "what is wrong")
    (evidence,) = found.evidence
    assert evidence.quote == "Don\u2019t bother me.  It is", "the transcript's own words, not the model's"
    assert evidence.pointer == "/content/0/text"


@pytest.mark.parametrize(
    ("event", "quote"),
    [
        (4, "words that nobody said"),
        (0, "bother me"),
        (1, "What a nuisance"),
        (9, "bother me"),
        ("the last one", "bother me"),
        ("", "bother me"),
        (4, ""),
        (4, "   "),
    ],
    ids=["nowhere", "another event", "reasoning", "no such event", "no number", "no event", "no words", "blank"],
)
async def test_a_fault_without_its_words_is_no_verdict(event: int | str, quote: str) -> None:
    decision = await asked(says("fail", finding(event, quote, "rude")))
    assert (decision.status, decision.reason_code) == ("not_scored", "evidence_unverifiable")
    assert (decision.findings, decision.dropped_findings, decision.label) == ((), 1, "fail")
    assert decision.usage.requests == 1


async def test_a_failing_label_without_findings_is_no_verdict() -> None:
    assert (await asked(says("fail"))).reason_code == "evidence_unverifiable"


async def test_what_cannot_be_found_is_dropped_and_counted() -> None:
    mixed = finding(4, "bother me", "rude")
    mixed["evidence"].append({"event": "e4", "quote": "never said"})
    decision = await asked(says("fail", mixed, finding(4, "invented", "rude")))
    assert (len(decision.findings), decision.dropped_findings) == (1, 1)
    assert [place.quote for place in decision.findings[0].evidence] == ["bother me"]


@pytest.mark.parametrize(
    ("event", "quote"),
    [
        ("[e0 user turn 0]", "Where is my order"),
        ("0", "order A1?\n  Please be"),
        ("e3", "way<U+200B> to"),
        ("e3", "on its way"),
        ("e2", 'lookup_order({"order_id": "A1"})'),
        ("e2", "lookup_order"),
        ("e2", '{"order_id"'),
    ],
)
async def test_words_may_be_copied_as_they_were_shown(event: str, quote: str) -> None:
    decision = await asked(says("fail", finding(event, quote, "rude")))
    assert decision.passed is False
    assert decision.findings[0].evidence[0].quote in json.dumps(CASE.transcript.document, ensure_ascii=False).replace(
        '\\"', '"'
    ).replace("\\n", "\n")


async def test_what_was_not_shown_cannot_be_cited() -> None:
    said = says("fail", finding(4, "bother me", "rude"))
    assert (await asked(said, until=2)).reason_code == "evidence_unverifiable"
    assert (await asked(said, until=2, events=[4])).passed is False
    assert "bother" not in said.prompts[0].transcript


async def test_abstaining_is_no_verdict() -> None:
    decision = await asked(says("cannot_determine", finding(4, "bother me", "rude")))
    assert (decision.status, decision.reason_code, decision.label) == (
        "not_scored",
        "judge_abstained",
        "cannot_determine",
    )


async def test_a_passing_label_keeps_remarks_and_is_disputed_by_faults() -> None:
    decision = await asked(says("pass", finding(4, "on its way", "curt")))
    assert (decision.passed, decision.disputed, decision.dropped_findings) == (True, False, 0)
    assert [found.severity for found in decision.findings] == ["info"]

    decision = await asked(says("pass", finding(4, "bother me", "rude")))
    assert (decision.passed, decision.disputed, decision.dropped_findings) == (True, True, 1)
    assert decision.findings == ()


async def test_without_a_model_it_is_plainly_said() -> None:
    decision = await ask(QUESTION, CASE, bench_with(None))
    assert (decision.status, decision.reason_code, decision.usage.requests) == ("not_scored", "no_judge_model", 0)
    assert "No judge model is configured" in decision.rationale


async def test_a_judge_may_ask_for_more_and_keeps_it_as_details() -> None:
    question = replace(QUESTION, additions={"tone": {"type": "string", "enum": ["warm", "cold"]}})
    assert (await asked(says("pass", tone="cold"), question)).details == {"tone": "cold"}


async def test_a_flood_of_findings_is_cut() -> None:
    many = [finding(4, "bother me", "rude")] * 500
    decision = await asked(says("fail", *many))
    assert len(decision.findings) < 50
    assert len(decision.findings) + decision.dropped_findings == 500


async def test_inventions_about_a_long_event_are_not_looked_for_without_end() -> None:
    case = case_of(
        {"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "word " * 100_000}]}
    )
    inventions = [finding(1, f"invention {number}", "rude") for number in range(20)]
    started = time.process_time()
    decision = await ask(QUESTION, case, bench_with(says("fail", *inventions)))
    assert (decision.reason_code, decision.dropped_findings) == ("evidence_unverifiable", 20)
    assert time.process_time() - started < 3


@pytest.mark.parametrize("attack", ATTACKS, ids=ascii)
async def test_no_attack_changes_what_is_asked(attack: str) -> None:
    document = json.loads(recording(attack))
    harmless = json.loads(recording("x"))
    model = says("pass")
    for each in (document, harmless):
        await ask(QUESTION, case_of(each), bench_with(model))
    attacked, plain = model.prompts
    assert (attacked.system, attacked.question, attacked.answer_schema) == (
        plain.system,
        plain.question,
        plain.answer_schema,
    )
    assert len(structure(attacked.transcript)) == len(structure(plain.transcript))
