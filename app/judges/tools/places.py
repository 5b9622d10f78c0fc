"""Evidence for calls and what is around them, short enough to be read: a result may be a megabyte, a quote may not.

Of a string the beginning is cited. Elsewhere a quote is the whole value, so a place that is too large is given up for
one that names the call or the event.
"""

from app.findings.evidence import EvidenceError, cite, whole
from app.findings.model import Evidence, Role
from app.judges.tools.calls import arguments_text
from app.transcripts.model import Source, ToolCall, Transcript

LONGEST_QUOTE = 600
"""Code points."""


def short_cite(transcript: Transcript, source: Source, event: int | None, pointer: str, role: Role) -> Evidence | None:
    """Cite a place, of a long string its beginning; None where there is no such place or it is too large."""
    try:
        found = cite(transcript, source, event, pointer, role=role)
        if len(found.quote) <= LONGEST_QUOTE:
            return found
        return None if found.start is None else cite(transcript, source, event, pointer, 0, LONGEST_QUOTE, role)
    except EvidenceError:
        return None


def event_place(transcript: Transcript, event: int, role: Role) -> Evidence:
    """Cite an event as such."""
    found = whole(transcript, event, role)
    shorter = found if len(found.quote) <= LONGEST_QUOTE else None
    return (
        shorter
        or short_cite(transcript, found.source, event, found.pointer, role)
        or cite(transcript, transcript.source, event, "/type", role=role)
    )


def call_place(transcript: Transcript, call: ToolCall, role: Role) -> Evidence:
    """Cite a call by its arguments, or by its name where it has none worth citing."""
    readable = call.arguments_raw or len(arguments_text(transcript, call)) <= LONGEST_QUOTE
    if call.arguments and readable:
        arguments = short_cite(transcript, transcript.source, call.event, call.arguments_pointer, role)
        if arguments is not None:
            return arguments
    name = short_cite(transcript, transcript.source, call.event, "/name", role)
    return name or event_place(transcript, call.event, role)


def output_place(transcript: Transcript, call: ToolCall, role: Role) -> Evidence | None:
    """Cite the result of a call, if it has one."""
    if call.output_event is None or not call.output_available:
        return None
    return short_cite(transcript, transcript.source, call.output_event, call.output_pointer, role)
