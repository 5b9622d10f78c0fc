"""Was it the right tool, among all the agent could have called, given only what it knew at that moment?

The model sees what stands before the batch the call belongs to, then the calls of the batch: what came later would
make every choice look wise or foolish. A name that is in no catalogue needs no opinion: code decides.
"""

from bisect import bisect_left
from collections.abc import Sequence

from app.findings.evidence import cite
from app.findings.model import Decision, Subject, failed, not_scored
from app.judges import asking
from app.judges.asking import ask, no_model
from app.judges.contract import Bench, Case, Judge
from app.judges.question import Fault, Level, Question
from app.judges.reporting import count, report, shown
from app.judges.tools.calls import call_of, call_subjects
from app.transcripts.model import ToolCall, Transcript
from app.transcripts.render import render_events

QUESTION = Question(
    dimension="tool_selection",
    text="Was this tool the right one to call at this moment, among all the agent could have called?",
    levels=(
        Level("pass", "The call serves the user's request, and no listed tool serves it clearly better.", passed=True),
        Level(
            "fail",
            "Another listed tool was clearly the right one, or nothing called for this call, or it changes something "
            "that the user neither asked for nor agreed to.",
            passed=False,
        ),
    ),
    faults={
        "unknown_tool": Fault(
            "high",
            "The tool does not exist",
            "The agent relied on a capability it does not have; whatever it says about the result is made up.",
        ),
        "wrong_tool": Fault(
            "high",
            "The wrong tool was called",
            "What the user asked for does not get done, or something else does.",
            meaning="another listed tool was clearly the right one, or this one cannot serve the request",
        ),
        "unjustified_action": Fault(
            "high",
            "The call acts without a mandate",
            "Something was changed that the user did not ask for or agree to.",
            meaning="it changes something that the user neither asked for nor agreed to",
        ),
        "needless_call": Fault(
            "low",
            "The call was not needed",
            "It costs time and money and brings nothing.",
            meaning="nothing in the request calls for it, or its answer was already known",
        ),
    },
    guidance=(
        "Judge the choice of the tool only, not its arguments and not its result, which the agent did not know yet. "
        "Calls made together are one step: a call is not needless because another of them serves the same purpose in "
        "part. Looking something up before acting is a good choice. Cite the request that the call does not serve, or "
        "the call."
    ),
)

REASONS = {
    **asking.REASONS,
    "no_tool_catalogue": "The recording does not say which tools the agent could have called.",
    "nothing_checkable": "The call names no tool.",
}

_MOST_NEIGHBOURS = 25
_MOST_NAME_CHARS = 100
_NAMED_BY_THE_AGENT = frozenset({"function", "custom"})
"""Kinds whose names the agent wrote. Hosted tools and servers name themselves, so their names cannot be made up."""


async def _decide(case: Case, subject: Subject, bench: Bench) -> Decision:
    transcript = case.transcript
    call = call_of(case, subject)
    if not transcript.catalogue_declared:
        return not_scored("no_tool_catalogue", REASONS["no_tool_catalogue"])
    if call.tool_name is None:
        return not_scored("nothing_checkable", REASONS["nothing_checkable"])
    if _is_unknown(transcript, call):
        return _unknown(transcript, call)
    if bench.model is None:
        return no_model()
    events = _batch(transcript.calls, call)
    about = (
        "Then the agent made the calls below together, knowing nothing but the recording above. The question is about "
        f"the call in event e{call.event} alone.\n{render_events(transcript, case.nonce, events, 'calls')}"
    )
    return await ask(QUESTION, case, bench, about=about, until=events[0], events=events)


def _batch(calls: Sequence[ToolCall], call: ToolCall) -> list[int]:
    """Return the events of the calls made together with one of them, itself included, its nearest neighbours only."""
    position = bisect_left(calls, call.event, key=lambda each: each.event)
    near = calls[max(position - _MOST_NEIGHBOURS, 0) : position + _MOST_NEIGHBOURS + 1]
    return [each.event for each in near if each.batch == call.batch and not each.plumbing]


def _is_unknown(transcript: Transcript, call: ToolCall) -> bool:
    """Return whether nobody ever offered this tool. Where tools are found on the way, the list is never complete."""
    complete = transcript.catalogue[-1].origin == "declared" and not transcript.context_incomplete
    return call.tool is None and call.kind in _NAMED_BY_THE_AGENT and complete


def _unknown(transcript: Transcript, call: ToolCall) -> Decision:
    known = count(len(transcript.catalogue), "tool")
    finding = report(
        QUESTION.faults,
        "unknown_tool",
        f"The agent called {shown(call.tool_name)}, which is not among the {known} it had.",
        [cite(transcript, transcript.source, call.event, "/name")],
        event=call.event,
        turn=call.turn,
    )
    return failed("The tool is in no catalogue of this conversation.", [finding], label="fail")


TOOL_SELECTION = Judge(
    name=QUESTION.dimension,
    family="tool",
    version="1",
    question=QUESTION.text,
    level="call",
    method="hybrid",
    subjects=call_subjects,
    decide=_decide,
    severities=QUESTION.severities,
    labels=QUESTION.labels,
    reasons=REASONS,
)
