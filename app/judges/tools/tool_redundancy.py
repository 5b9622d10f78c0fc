"""Did the agent call the same tool again for nothing? What counts as a repeat is defined in ``repeats``.

Only what code can establish is reported: the same call, the same result, nothing changed between. A retry loop is one
finding and swallows its repeats.
"""

import asyncio
from collections.abc import Mapping, Sequence

from app.findings.model import Decision, Finding, Subject, failed, not_applicable, not_scored, passed
from app.judges.contract import Bench, Case, Judge
from app.judges.question import Fault
from app.judges.reporting import count, report, severities, shown
from app.judges.tools.places import call_place, output_place
from app.judges.tools.repeats import Repeat, find_repeats
from app.transcripts.model import Transcript

FAULTS: Mapping[str, Fault] = {
    "retry_loop": Fault(
        "medium",
        "The same failing call is tried again and again",
        "The agent does not react to the error: it pays for every attempt and gets no closer to what the user wants.",
    ),
    "identical_repeat": Fault(
        "medium",
        "A call is repeated with nothing changed",
        "The answer was already there. It costs time and money, and shows that the agent lost track of what it knew.",
    ),
    "identical_recheck": Fault(
        "low",
        "A call is repeated and brings the same result",
        "It may have had a reason (the user asked again, a job was polled, an error might have passed), but brought "
        "nothing.",
    ),
}

_REASONS = {
    "single_call": "With fewer than two tool calls nothing can be repeated.",
    "output_not_recorded": "Equal calls were made, but their results are not recorded, so they cannot be compared.",
}
_MOST_PLACES = 5
_MOST_FINDINGS = 100
_MOST_CALLS_AT_ONCE = 1_000
"""More of them are compared in a thread, which lets other conversations go on."""


def _subjects(case: Case) -> Sequence[Subject]:
    return [Subject()] if case.transcript.has_tool_calls else []


async def _decide(case: Case, _: Subject, __: Bench) -> Decision:
    transcript = case.transcript
    calls = transcript.judged_calls
    if len(calls) < 2:  # noqa: PLR2004 - a repeat takes two
        return not_applicable("single_call", "The conversation has a single tool call.")
    large = len(calls) > _MOST_CALLS_AT_ONCE
    repeats = await asyncio.to_thread(find_repeats, transcript) if large else find_repeats(transcript)
    if repeats.found:
        redundant = sum(len(repeat.calls) - 1 for repeat in repeats.found)
        rationale = f"{redundant} of {len(calls)} tool calls repeat an earlier one with nothing changed between."
        if len(repeats.found) > _MOST_FINDINGS:
            rationale += f" Shown are the first {_MOST_FINDINGS} of {len(repeats.found)} groups."
        return failed(rationale, [_finding(transcript, repeat) for repeat in repeats.found[:_MOST_FINDINGS]])
    if repeats.unsettled:
        unsettled = count(len(repeats.unsettled), "result")
        return not_scored("output_not_recorded", f"Equal calls were made, of which {unsettled} are not recorded.")
    return passed(f"None of {len(calls)} tool calls repeats an earlier one with nothing changed between.")


def _finding(transcript: Transcript, repeat: Repeat) -> Finding:
    first, *again = repeat.calls
    events = ", ".join(str(call.event) for call in repeat.calls[:_MOST_PLACES])
    more = f" and {len(repeat.calls) - _MOST_PLACES} more" if len(repeat.calls) > _MOST_PLACES else ""
    how = "failing each time" if first.outcome in ("failed", "suspected_failure") else "with the same result"
    description = (
        f"{shown(first.tool_name, 'A tool without a name')} is called {len(repeat.calls)} times with the same "
        f"arguments, {how} (events {events}{more})."
    )
    places = [call_place(transcript, call, "violation") for call in again[: _MOST_PLACES - 1]]
    results = [output_place(transcript, call, "support") for call in (first, again[-1])]
    evidence = [*places, call_place(transcript, first, "support"), *results]
    return report(FAULTS, repeat.kind, description, evidence, event=again[0].event, turn=again[0].turn)


TOOL_REDUNDANCY = Judge(
    name="tool_redundancy",
    family="tool",
    version="1",
    question="Did the agent repeat a tool call although nothing had changed since the last one?",
    level="conversation",
    method="deterministic",
    subjects=_subjects,
    decide=_decide,
    severities=severities(FAULTS),
    reasons=_REASONS,
)
