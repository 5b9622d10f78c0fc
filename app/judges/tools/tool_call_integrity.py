"""Is the record of the tool calls sound? Every other judge reads calls and results through it.

What is counted is what pairing found (``RecordFact``): nothing here is the agent's doing for certain, much of it is an
exporter's. Two facts are remarks only. Real agents reuse call ids, and outputs are paired in order, so a repeated id
loses nothing; an output that answers no recorded call is usually a recording that starts late.

A second output for one call is low: the first is taken for what the agent saw, and if the two differ that may be
wrong, so a reader of the other verdicts has to know.
"""

from collections.abc import Iterator, Mapping, Sequence

from app.findings.model import Decision, Evidence, Finding, Subject, failed, passed
from app.judges.contract import Bench, Case, Judge
from app.judges.question import Fault
from app.judges.reporting import count, report, severities, shown
from app.judges.tools.places import call_place, event_place, short_cite
from app.transcripts.model import RecordFact, Transcript

FAULTS: Mapping[str, Fault] = {
    "output_before_call": Fault(
        "high",
        "A result stands before the call it answers",
        "Either the events are out of order or the result was not produced by this call; what the agent knew when it "
        "called cannot be told from this recording.",
    ),
    "call_without_output": Fault(
        "low",
        "No result is recorded for a call",
        "Whether the call succeeded is unknown, so neither its use nor what the agent says about it can be checked.",
    ),
    "malformed_call": Fault(
        "low",
        "A call names no tool",
        "What the agent wanted to do cannot be told, so the call cannot be judged.",
    ),
    "second_output": Fault(
        "low",
        "A call is answered twice",
        "The first result is taken for what the agent saw. If they differ, it may have acted on the other one.",
    ),
    "duplicate_call_id": Fault(
        "info",
        "Calls share an id",
        "Results were paired with calls in order. A tool that pairs by id alone would mix them up.",
    ),
    "orphan_output": Fault(
        "info",
        "A result answers no recorded call",
        "The call is missing from the recording, most often because it starts late; the call itself is not judged.",
    ),
}

_ABSENCES = frozenset({"call_without_output", "malformed_call"})
_MOST_FINDINGS = 50
"""Of one code; the rationale tells how many there are."""
_MOST_PLACES = 5


def _subjects(case: Case) -> Sequence[Subject]:
    return [Subject()] if case.transcript.has_tool_calls else []


async def _decide(case: Case, _: Subject, __: Bench) -> Decision:
    transcript = case.transcript
    groups = _groups(transcript)
    findings = tuple(_finding(transcript, group) for code in FAULTS for group in groups.get(code, [])[:_MOST_FINDINGS])
    counted = [_counted(code, groups[code]) for code in FAULTS if code in groups]
    calls = count(len(transcript.judged_calls), "tool call")
    if any(finding.severity != "info" for finding in findings):
        return failed(f"{calls} recorded: {'; '.join(counted)}.", findings)
    remarks = f" Remarks: {'; '.join(counted)}." if counted else ""
    return passed(
        f"{calls} recorded, each followed by its own result or complete in itself.{remarks}", findings=findings
    )


def _groups(transcript: Transcript) -> dict[str, list[list[RecordFact]]]:
    """Return the facts by code; those about one repeated id belong together."""
    by_subject: dict[str, dict[object, list[RecordFact]]] = {}
    for fact in transcript.facts:
        subject: object = fact.event
        if fact.code == "duplicate_call_id" and fact.call is not None:
            subject = transcript.calls[fact.call].call_id
        by_subject.setdefault(fact.code, {}).setdefault(subject, []).append(fact)
    return {code: list(subjects.values()) for code, subjects in by_subject.items()}


def _counted(code: str, groups: Sequence[Sequence[RecordFact]]) -> str:
    told = f"{FAULTS[code].title.lower()} ({len(groups)} times)" if len(groups) > 1 else FAULTS[code].title.lower()
    return f"{told}, of which {_MOST_FINDINGS} are shown" if len(groups) > _MOST_FINDINGS else told


def _finding(transcript: Transcript, group: Sequence[RecordFact]) -> Finding:
    fact = group[0]
    name = None if fact.call is None else transcript.calls[fact.call].tool_name
    about = f" ({shown(name)})" if name else ""
    description = f"Event {fact.event}{about}: {fact.message}."
    if fact.code == "call_without_output" and fact.event == len(transcript.events) - 1:
        description = f"Event {fact.event}{about}: the recording ends with this call, before any output."
    if len(group) > 1:
        description = f"{count(len(group), 'call')} repeat an id that an earlier call carries: {fact.message}."
    return report(
        FAULTS,
        fact.code,
        description,
        [*_places(transcript, group), _other_side(transcript, fact)],
        event=fact.event,
        turn=transcript.events[fact.event].turn,
    )


def _places(transcript: Transcript, group: Sequence[RecordFact]) -> Iterator[Evidence]:
    """Cite the places that are wrong; what is missing is cited where it should be."""
    for fact in group[:_MOST_PLACES]:
        if fact.code in _ABSENCES:
            yield event_place(transcript, fact.event, "context")
            continue
        label = (
            short_cite(transcript, transcript.source, fact.event, fact.pointer, "violation") if fact.pointer else None
        )
        yield label or event_place(transcript, fact.event, "violation")


def _other_side(transcript: Transcript, fact: RecordFact) -> Evidence | None:
    """Cite the call that an output belongs to, or the first that carried a repeated id."""
    if fact.call is None or fact.code in _ABSENCES:
        return None
    call = transcript.calls[fact.call]
    if fact.code == "duplicate_call_id":
        call = next(other for other in transcript.calls if other.call_id == call.call_id)
    return None if call.event == fact.event else call_place(transcript, call, "support")


TOOL_CALL_INTEGRITY = Judge(
    name="tool_call_integrity",
    family="tool",
    version="1",
    question="Is the record of the tool calls sound: does every result follow the one call it answers?",
    level="conversation",
    method="deterministic",
    subjects=_subjects,
    decide=_decide,
    severities=severities(FAULTS),
)
