"""The calls that tool judges decide about, and back from a verdict's subject to its call."""

import json
from bisect import bisect_left
from collections.abc import Sequence

from app.findings.model import Subject
from app.judges.contract import Case
from app.transcripts.model import ToolCall, Transcript


def call_subjects(case: Case) -> Sequence[Subject]:
    """Return a subject for every call that is judged, in order."""
    return [Subject("call", call.turn, call.event, call.call_id) for call in case.transcript.judged_calls]


def call_of(case: Case, subject: Subject) -> ToolCall:
    """Return the call that a subject of ``call_subjects`` stands for, however many there are.

    Raises:
        LookupError: the conversation has no call at this event.
    """
    calls = case.transcript.calls
    at = bisect_left(calls, -1 if subject.event is None else subject.event, key=lambda call: call.event)
    if at == len(calls) or calls[at].event != subject.event:
        raise LookupError(f"no tool call at event {subject.event}")
    return calls[at]


def arguments_text(transcript: Transcript, call: ToolCall) -> str:
    """Return the arguments as JSON text, as recorded: 20 MB of them are not encoded again."""
    if call.arguments_raw is not None:
        return call.arguments_raw or "{}"
    for segment in transcript.events[call.event].segments:
        if segment.pointer == call.arguments_pointer and not segment.is_string:
            return segment.text
    return json.dumps(call.arguments)
