"""Where an argument stands. Agents write their arguments as JSON inside a string, and that string is what is cited.

A value is named by a pointer into the decoded arguments; its evidence is the span of the raw text that spells it, so
that a reader sees the agent's own words, in the place where they were written.
"""

import re
from collections.abc import Sequence

from app.findings.evidence import EvidenceError, cite
from app.findings.model import Evidence, Role
from app.judges.tools.calls import arguments_text
from app.judges.tools.places import LONGEST_QUOTE, call_place, short_cite
from app.transcripts import pointer as pointers
from app.transcripts.model import ToolCall, Transcript
from app.transcripts.scan import skip_space
from app.transcripts.verbatim import Span, find

_LONGEST_SEARCHED = 1 << 20
"""Characters. Larger arguments are cited as a whole, since finding a value in them holds everybody up."""
_COLON_BEFORE = re.compile(r'"[ \t\n\r]*:[ \t\n\r]*\Z')
_SPACE = 64


def argument_place(
    transcript: Transcript, call: ToolCall, pointer: str, role: Role, *, with_key: bool = False
) -> Evidence:
    """Cite the argument at ``pointer``, or the smallest place around it that can be cited.

    Args:
        transcript: the conversation.
        call: a call with decoded arguments.
        pointer: RFC 6901 inside the decoded arguments.
        role: what it is cited for.
        with_key: whether its name belongs to what is cited, because the name is what is wrong.
    """
    tokens = pointers.split(pointer)
    if len(arguments_text(transcript, call)) > _LONGEST_SEARCHED:
        return call_place(transcript, call, role)
    if call.arguments_raw is None:
        place = short_cite(transcript, transcript.source, call.event, call.arguments_pointer + pointer, role)
        return place or call_place(transcript, call, role)
    span = value_span(call.arguments_raw, tokens)
    if span is None:
        return call_place(transcript, call, role)
    start, end = span
    if with_key and tokens:
        start = _key_start(call.arguments_raw, start)
    end = min(end, start + LONGEST_QUOTE)
    try:
        return cite(transcript, transcript.source, call.event, call.arguments_pointer, start, end, role)
    except EvidenceError:
        return call_place(transcript, call, role)


def value_span(raw: str, tokens: Sequence[str]) -> Span | None:
    """Return where the value at ``tokens`` is spelt in the JSON text ``raw``, None where nothing is found.

    Of a repeated key the last value counts, as for whoever decodes the text.
    """
    try:
        return find(raw, skip_space(raw, 0), tokens)
    except (ValueError, IndexError, RecursionError):
        return None


def _key_start(raw: str, value_start: int) -> int:
    """Return where the key of the value begins, or the value itself where no key precedes it."""
    near = max(0, value_start - _SPACE)
    colon = _COLON_BEFORE.search(raw, near, value_start)
    if colon is None:
        return value_start
    quote = raw.rfind('"', 0, colon.start())
    while quote > 0 and _is_escaped(raw, quote):
        quote = raw.rfind('"', 0, quote)
    return max(quote, 0)


def _is_escaped(raw: str, at: int) -> bool:
    before = raw[:at]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1
