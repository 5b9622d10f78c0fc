"""Evidence is cut from the transcript by the server, never taken on trust: a quote that is not there is never shown.

``cite`` makes evidence for a place that code knows; ``locate`` finds the place of words that a model quoted; ``whole``
cites an event as such, for what is missing where it should have been.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from app.findings.model import Evidence, Role
from app.transcripts import pointer as pointers
from app.transcripts.content import shown
from app.transcripts.folding import Words, words
from app.transcripts.model import Event, Json, Source, Transcript
from app.transcripts.scan import skip_space
from app.transcripts.verbatim import Span, enclosing, find


class _Step(NamedTuple):
    """The last step of a path; the steps before it are shared with everything else below them."""

    before: "_Step | None"
    token: str | int


class EvidenceError(LookupError):
    """The place that was to be cited does not exist."""


def cite(  # noqa: PLR0917 - a place is always given in this order
    transcript: Transcript,
    source: Source,
    event: int | None,
    pointer: str,
    start: int | None = None,
    end: int | None = None,
    role: Role = "violation",
) -> Evidence:
    """Quote what stands at a place.

    Args:
        transcript: where to quote from.
        source: ``items``, ``messages`` or ``tools``, whose entry ``event`` is meant; or ``document``, the whole
            conversation, with ``event`` None.
        event: index of the entry.
        pointer: RFC 6901 inside the entry.
        start: first code point, where a string stands at the pointer; its beginning if None.
        end: code point after the last; the string's end if None.
        role: what the words are cited for.

    Returns:
        Evidence whose quote is those code points, or the verbatim JSON text of a value that is not a string.

    Raises:
        EvidenceError: there is no such place.
    """
    try:
        tokens = pointers.split(pointer)
    except ValueError as error:
        raise EvidenceError(str(error)) from error
    value = _resolve(transcript, source, event, tokens)
    if isinstance(value, str):
        low, high = 0 if start is None else start, len(value) if end is None else end
        if not 0 <= low <= high <= len(value):
            raise EvidenceError(f"{source}[{event}]{pointer} has no characters {low} to {high}")
        return Evidence(source, event, pointer, low, high, value[low:high], role)
    if start is not None or end is not None:
        raise EvidenceError(f"{source}[{event}]{pointer} is not a string and has no characters to cite")
    span = find(transcript.raw, _start(transcript, source, event), tokens)
    if span is None:
        raise EvidenceError(f"{source}[{event}]{pointer} is not in the recording")
    return Evidence(source, event, pointer, None, None, transcript.raw[slice(*span)], role)


def whole(transcript: Transcript, event: int, role: Role = "context") -> Evidence:
    """Cite an event as such: its first words, or the content, output or type that has none.

    Raises:
        EvidenceError: there is no such event.
    """
    entry = _resolve(transcript, transcript.source, event, ())
    spoken = [segment.pointer for segment in transcript.events[event].segments if segment.text]
    bare = [f"/{key}" for key in ("content", "output", "type") if key in entry]
    return cite(transcript, transcript.source, event, [*spoken, *bare, ""][0], role=role)


def locate(transcript: Transcript, event: int, quote: str, role: Role = "violation") -> Evidence | None:
    """Find words that a model quoted from an event, and quote what really stands there.

    They are looked for in the event's strings, exactly and then as readers compare words; then in the spelling of its
    JSON, where the smallest value that holds them is cited; then across the pieces that its text is made of, where
    the largest share is cited.

    Returns:
        Evidence in the transcript's own words, or None where the event says nothing of the kind or the quote has no
        letter or digit.
    """
    wanted = words(quote)
    if wanted is None or not 0 <= event < len(transcript.events):
        return None
    for find_in in (Words.find, Words.find_alike):
        for place, text in _strings(transcript, event):
            span = find_in(wanted, text)
            if span is not None:
                return cite(transcript, transcript.source, event, _pointer(place), *span, role=role)
    return _in_json(transcript, event, wanted, role) or _across(transcript, event, wanted, role)


def _strings(transcript: Transcript, event: int) -> Iterator[tuple[str | _Step | None, str]]:
    """Yield the event's strings: first those a reader sees, then all others in its entry."""
    seen = [segment for segment in transcript.events[event].segments if segment.is_string]
    yield from ((segment.pointer, segment.text) for segment in seen)
    known = {id(segment.text) for segment in seen}
    waiting: list[tuple[_Step | None, Json]] = [(None, _resolve(transcript, transcript.source, event, ()))]
    while waiting:
        steps, value = waiting.pop()
        if isinstance(value, str):
            if id(value) not in known:
                yield steps, value
        elif isinstance(value, dict):
            waiting += [(_Step(steps, key), member) for key, member in reversed(value.items())]
        elif isinstance(value, list):
            waiting += [(_Step(steps, number), value[number]) for number in range(len(value) - 1, -1, -1)]


def _pointer(place: str | _Step | None) -> str:
    if isinstance(place, str):
        return place
    tokens: list[str | int] = []
    while place is not None:
        tokens.append(place.token)
        place = place.before
    return pointers.build(reversed(tokens))


def _in_json(transcript: Transcript, event: int, wanted: Words, role: Role) -> Evidence | None:
    start = _start(transcript, transcript.source, event)
    entry = find(transcript.raw, start, ()) or (start, start)
    text = transcript.raw[slice(*entry)]
    span = wanted.find(text) or wanted.find_alike(text)
    if span is None:
        return None
    low, high = start + span[0], start + span[1]
    path = enclosing(transcript.raw, start, low, high)
    # A value whose key is repeated further on is not what its pointer leads to; what encloses both is.
    while path and not _covers(find(transcript.raw, start, path), low, high):
        path = path[:-1]
    return cite(transcript, transcript.source, event, pointers.build(path), role=role)


def _covers(span: Span | None, low: int, high: int) -> bool:
    return span is not None and span[0] <= low and high <= span[1]


def _across(transcript: Transcript, event: int, wanted: Words, role: Role) -> Evidence | None:
    said = transcript.events[event]
    span = wanted.find(said.text) or wanted.find_alike(said.text)
    if span is None:
        return None
    shares = [(min(high, span[1]) - max(low, span[0]), low, number) for number, low, high in _pieces(said)]
    share, low, number = max(shares, default=(0, 0, 0))
    if share <= 0:
        return None
    segment = said.segments[number]
    if not segment.is_string or shown(segment) != segment.text:
        # The text shows it otherwise than it was recorded, so characters do not correspond: all of it is cited.
        return cite(transcript, transcript.source, event, segment.pointer, role=role)
    begin = max(0, span[0] - low)
    return cite(transcript, transcript.source, event, segment.pointer, begin, begin + share, role)


def _pieces(event: Event) -> Iterator[tuple[int, int, int]]:
    """Yield where in the event's text each segment stands: its number, start and end."""
    at = 0
    for number, segment in enumerate(event.segments):
        piece = shown(segment)
        low = event.text.find(piece, at)
        if low < 0:
            return
        at = low + len(piece)
        yield number, low, at


def _resolve(transcript: Transcript, source: Source, event: int | None, tokens: Sequence[str]) -> Json:
    value: Json = transcript.document
    path = tokens if source == "document" else (source, str(event), *tokens)
    if (event is None) != (source == "document"):
        raise EvidenceError(f"event {event} of {source}: only the document as a whole has no event")
    for token in path:
        number = pointers.position(token) if isinstance(value, list) else None
        if isinstance(value, dict) and token in value:
            value = value[token]
        elif isinstance(value, list) and number is not None and number < len(value):
            value = value[number]
        else:
            raise EvidenceError(f"{source}[{event}] has no {pointers.build(tokens)}")
    return value


def _start(transcript: Transcript, source: Source, event: int | None) -> int:
    """Return where the entry begins in the recording."""
    begin = skip_space(transcript.raw, 0)
    if event is None:
        return begin
    if source in transcript.starts:
        return transcript.starts[source][event]
    span = find(transcript.raw, begin, (source, str(event)))
    if span is None:
        raise EvidenceError(f"{source}[{event}] is not in the recording")
    return span[0]
