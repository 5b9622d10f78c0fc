"""How a model is asked, and how much of its answer is believed.

Rules first, the fenced transcript, the question last. Every quote is looked up in the event it cites: a finding whose
words are not there is dropped and counted, and a failing label without any finding left is not a verdict. A passing
label with faults is stored as disputed. Severity comes from the question's table, never from the model.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from app.findings.evidence import locate
from app.findings.model import Coverage, Decision, Evidence, Finding, failed, not_scored, passed
from app.judges.contract import Answer, Bench, Case, Prompt
from app.judges.question import CANNOT_DETERMINE, RULES, Level, Question
from app.transcripts.model import Transcript
from app.transcripts.render import Rendered, render
from app.transcripts.visible import as_recorded

REASONS: Mapping[str, str] = {
    "no_judge_model": "No judge model is configured, so nobody was asked.",
    "judge_abstained": "The judge model found that the recording does not allow an answer.",
    "evidence_unverifiable": "The judge model saw a fault, but none of the words it cited stand where it said.",
}
"""Why a model judge may not score; part of every such judge's ``reasons``."""

_MOST_FINDINGS = 20
_MOST_QUOTES = 10
_MOST_QUOTE_CHARS = 2000
_MOST_TEXT_CHARS = 4000
_EVENT = re.compile(r"\s*\[?e?(\d{1,9})\b")


def no_model(**rest: Any) -> Decision:
    """Return the decision of a question that nobody can be asked."""
    rationale = (
        "No judge model is configured on this server, so this question was put to nobody. Judges that work without a "
        "model have run; configure a judge endpoint to have this one answered."
    )
    return not_scored("no_judge_model", rationale, **rest)


async def ask(
    question: Question,
    case: Case,
    bench: Bench,
    *,
    about: str = "",
    until: int | None = None,
    events: Sequence[int] = (),
) -> Decision:
    """Put a question to the judge model and return what its answer is worth.

    Args:
        question: what is asked.
        case: the conversation.
        bench: holds the model, if there is one.
        about: what precisely the question is about, rendered and fenced.
        until: the model sees only what stands before this event.
        events: the events shown in ``about``; they may be cited too.

    Raises:
        JudgeModelError: when there is no answer to be had.
    """
    if bench.model is None:
        return no_model()
    rendered = render(case.transcript, case.nonce, until=until)
    prompt = Prompt(question.dimension, RULES, rendered.text, question.asked(about), question.answer_schema)
    answer = await bench.model.ask(prompt)
    return _decision(question, case.transcript, answer, rendered, rendered.shown.union(events))


def _decision(
    question: Question, transcript: Transcript, answer: Answer, rendered: Rendered, citable: frozenset[int]
) -> Decision:
    label, reasoning = answer.value["label"], answer.value["reasoning"][:_MOST_TEXT_CHARS]
    facts: dict[str, Any] = {
        "label": label,
        "method": "llm",
        "model": answer.model,
        "prompt_sha256": answer.prompt_sha256,
        "coverage": Coverage(rendered.events_seen, rendered.events_total),
        "usage": answer.usage,
        "attempts": answer.attempts,
        "details": {name: answer.value[name] for name in question.additions},
    }
    if label == CANNOT_DETERMINE:
        return not_scored("judge_abstained", reasoning, **facts)
    level = next(level for level in question.levels if level.label == label)
    items = answer.value["findings"]
    found = [_finding(question, level, transcript, item, citable) for item in items[:_MOST_FINDINGS]]
    kept = [finding for finding in found if finding is not None]
    faults = [finding for finding in kept if finding.severity != "info"]
    remarks = [finding for finding in kept if finding.severity == "info"]
    if level.passed:
        facts |= {"disputed": bool(faults), "dropped_findings": len(items) - len(remarks)}
        return passed(reasoning, findings=tuple(remarks), score=level.score, **facts)
    facts["dropped_findings"] = len(items) - len(kept)
    if not faults:
        return not_scored("evidence_unverifiable", reasoning, **facts)
    return failed(reasoning, kept, score=level.score, **facts)


def _finding(
    question: Question, level: Level, transcript: Transcript, item: Mapping[str, Any], citable: frozenset[int]
) -> Finding | None:
    quotes = item["evidence"][:_MOST_QUOTES]
    evidence = [place for quote in quotes if (place := _place(transcript, quote, citable)) is not None]
    if not evidence:
        return None
    code = level.code or item["code"]
    fault, event = question.faults[code], evidence[0].event
    return Finding(
        code=code,
        severity=fault.severity,
        title=fault.title,
        description=item["description"][:_MOST_TEXT_CHARS],
        why_it_matters=fault.why_it_matters,
        evidence=tuple(evidence),
        event=event,
        turn=None if event is None else transcript.events[event].turn,
    )


def _place(transcript: Transcript, cited: Mapping[str, str], citable: frozenset[int]) -> Evidence | None:
    """Return the place of a quote, exactly in the event it cites; what an agent thought is no evidence."""
    number, quote = _EVENT.match(cited["event"]), cited["quote"][:_MOST_QUOTE_CHARS].strip()
    event = int(number[1]) if number else -1
    if event not in citable or transcript.events[event].kind == "reasoning":
        return None
    return locate(transcript, event, quote) or locate(transcript, event, as_recorded(quote))
