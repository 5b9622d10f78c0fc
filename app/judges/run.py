"""The run loop: every judge about every subject of one conversation, each verdict told as soon as it is there.

One failing judge never fails another: this is where trouble is contained and becomes an ``error`` verdict with a
reason (the only ``except Exception`` of the core). Waiting is a value: when an endpoint asks for a long pause, the
loop finishes what it can and returns ``RetryIn``.
"""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from app.findings.model import Coverage, Decision, Subject, Usage, Verdict, errored, not_scored
from app.judges import voting
from app.judges.contract import Bench, Case, Judge, JudgeModelError

_log = logging.getLogger(__name__)

Emit = Callable[[Verdict], Awaitable[None]]

_UNASKED = frozenset({"budget_exhausted", "price_unknown", "model_unavailable"})
"""Reasons why a model was not asked at all: nothing failed, so nothing is an error."""
IN_FLIGHT = 64
"""Decisions of one conversation under way at once; the model's own limiter is what bounds a process."""


@dataclass(frozen=True, slots=True)
class RetryIn:
    """The conversation cannot be finished now; what was decided is stored, the rest is for another attempt."""

    seconds: float
    usage: Usage = Usage()
    """What the postponed questions have cost so far."""


async def run(
    judges: Iterable[Judge],
    case: Case,
    bench: Bench,
    emit: Emit,
    *,
    done: frozenset[tuple[str, str, str]] = frozenset(),
    votes: int = 1,
    may_wait: bool = True,
) -> RetryIn | None:
    """Decide everything that ``done`` (keys of earlier verdicts) does not hold yet.

    Args:
        judges: which dimensions.
        case: the conversation.
        bench: what judges may use.
        emit: is awaited with each verdict as it comes.
        done: (dimension, subject key, judge version) of what earlier attempts stored.
        votes: answers per model question.
        may_wait: whether a long Retry-After may postpone the rest; if not, it becomes an error.

    Returns:
        ``RetryIn`` when something was postponed, None when everything is decided.
    """
    work = _work(judges, case, done)
    waits: list[RetryIn] = []

    async def decide_from(start: tuple[Judge, Subject]) -> None:
        for judge, subject in itertools.chain((start,), work):
            outcome = await _decide(judge, case, subject, bench, votes)
            if isinstance(outcome, JudgeModelError):
                if outcome.retry_after_seconds is not None and may_wait:
                    waits.append(RetryIn(outcome.retry_after_seconds, outcome.usage))
                    continue
                outcome = _trouble(outcome)
            outcome = replace(outcome, coverage=outcome.coverage or _coverage(outcome, case))
            await emit(Verdict(judge.name, judge.family, judge.version, subject, judge.scale, judge.threshold, outcome))

    try:
        async with asyncio.TaskGroup() as group:
            for start in list(itertools.islice(work, IN_FLIGHT)):
                group.create_task(decide_from(start))
    except ExceptionGroup as errors:  # only ``emit`` raises: the first trouble is the trouble
        raise errors.exceptions[0] from None
    if not waits:
        return None
    return RetryIn(max(wait.seconds for wait in waits), sum((wait.usage for wait in waits), Usage()))


def _work(
    judges: Iterable[Judge], case: Case, done: frozenset[tuple[str, str, str]]
) -> Iterator[tuple[Judge, Subject]]:
    """Yield what is to decide, lazily: a transcript may have a hundred thousand calls."""
    only = len(case.transcript.turns) - 1 if case.scope == "last_turn" else None
    for judge in judges:
        if judge.family == "tool" and not case.transcript.has_tool_calls:
            continue
        for subject in judge.subjects(case):
            if only is not None and subject.turn not in {None, only}:
                continue
            if (judge.name, subject.key, judge.version) not in done:
                yield judge, subject


async def _decide(judge: Judge, case: Case, subject: Subject, bench: Bench, votes: int) -> Decision | JudgeModelError:
    try:
        return await voting.decide(judge, case, subject, bench, votes)
    except JudgeModelError as error:
        if error.reason_code not in _UNASKED:
            # Not the error's words: an endpoint may quote the transcript in them. The verdict keeps those.
            _log.warning("judge %s got no answer from the judge model: %s", judge.name, error.reason_code)
        return error
    except Exception as error:  # noqa: BLE001 - one failing judge never fails another
        _log.exception("judge %s failed on %s", judge.name, subject.key)
        return errored("internal_error", f"The judge itself failed: {type(error).__name__}.")


def _coverage(decision: Decision, case: Case) -> Coverage:
    """Return what was looked at when the judge does not say: code reads everything, an unanswered question nothing."""
    total = len(case.transcript.events)
    return Coverage(total if decision.status in {"scored", "not_applicable"} else 0, total)


def _trouble(error: JudgeModelError) -> Decision:
    make = not_scored if error.reason_code in _UNASKED else errored
    return make(error.reason_code, str(error), method="llm", usage=error.usage)
