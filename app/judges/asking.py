"""How a model is asked, and how much of its answer is believed.

Rules first, the fenced transcript, the question last. Every quote is looked up in the event it cites: a finding whose
words are not there is dropped and counted, and a failing label without any finding left is not a verdict. A passing
label with faults is stored as disputed. Severity comes from the question's table, never from the model.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any

from app.findings.evidence import locate
from app.findings.model import Coverage, Decision, Evidence, Finding, failed, not_scored, passed
from app.judges.contract import Answer, Bench, Case, Prompt
from app.judges.question import CANNOT_DETERMINE, RULES, Level, Question
from app.transcripts.model import Event, Transcript
from app.transcripts.render import Rendered, render
from app.transcripts.visible import as_recorded

REASONS: Mapping[str, str] = {
    "no_judge_model": "No judge model is configured, so nobody was asked.",
    "judge_abstained": "The judge model found that the recording does not allow an answer.",
    "budget_exhausted": "The evaluation's max_tokens or max_cost_usd is spent.",
    "price_unknown": "max_cost_usd is set, but the price of the judge model is not configured.",
    "model_unavailable": "The judge model that was asked for is not configured any more.",
    "evidence_unverifiable": "The judge model saw a fault, but none of the words it cited stand where it said.",
}
"""Why a model judge may not score; part of every such judge's ``reasons``."""

_MOST_FINDINGS = 20
_MOST_QUOTES = 5
_MOST_QUOTE_CHARS = 2000
_MOST_TEXT_CHARS = 4000
_MOST_SEARCHED_CHARS = 1_000_000
"""Words that are nowhere are looked for everywhere; an answer full of them may not hold up the process."""
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
    return await _decision(question, case.transcript, answer, rendered, rendered.shown.union(events))


async def _decision(
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
    places = _Places(transcript, citable)
    found = [_finding(question, level, item, await places.of(item)) for item in items[:_MOST_FINDINGS]]
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
    question: Question, level: Level, item: Mapping[str, Any], places: Sequence[tuple[Event, Evidence]]
) -> Finding | None:
    if not places:
        return None
    code = level.code or item["code"]
    fault, first = question.faults[code], places[0][0]
    return Finding(
        code=code,
        severity=fault.severity,
        title=fault.title,
        description=item["description"][:_MOST_TEXT_CHARS],
        why_it_matters=fault.why_it_matters,
        evidence=tuple(evidence for _, evidence in places),
        event=first.index,
        turn=first.turn,
    )


class _Places:
    """Looks up the quotes of one answer, exactly in the events they cite; what an agent thought is no evidence."""

    def __init__(self, transcript: Transcript, citable: frozenset[int]) -> None:
        self._transcript = transcript
        self._citable = citable
        self._room = _MOST_SEARCHED_CHARS

    async def of(self, item: Mapping[str, Any]) -> list[tuple[Event, Evidence]]:
        """Return the places of a finding's quotes, those that exist."""
        places: list[tuple[Event, Evidence]] = []
        for cited in item["evidence"][:_MOST_QUOTES]:
            number, quote = _EVENT.match(cited["event"]), cited["quote"][:_MOST_QUOTE_CHARS].strip()
            index = int(number[1]) if number else -1
            if index not in self._citable or self._transcript.events[index].kind == "reasoning":
                continue
            event = self._transcript.events[index]
            place = self._find(event, quote) or self._find(event, as_recorded(quote), but=quote)
            places += [] if place is None else [(event, place)]
            await asyncio.sleep(0)  # a search of a long event takes its time
        return places

    def _find(self, event: Event, quote: str, but: str = "") -> Evidence | None:
        if quote == but or self._room < 0:
            return None
        self._room -= len(event.text)
        return locate(self._transcript, event.index, quote)
