"""From the bytes of a request to an evaluation that may begin, or to everything that is wrong with them.

The compiled decoder checks the grammar and splits the body into verbatim slices; each conversation is then looked at
alone and let go again, which costs a fraction of building the whole: no garbage collector walks millions of objects,
and memory stays near the size of the body. Only a body that the decoder refuses, or one with NUL escapes, is rewritten
first (one for one, so that places stay), and only what breaks a rule is read again for a precise message.
"""

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct

from app.evaluation.model import EvaluationRequest, EvaluationWarning
from app.evaluation.reading_slices import Conversations
from app.evaluation.reading_warnings import Warnings
from app.evaluation.request import MEMBERS, RequestRules, read_member
from app.evaluation.request_values import MOST_COUNTED, Place, refuse_unknown
from app.evaluation.syntax import MAX_DEPTH, Fault, encoding_fault, fault, replace_unstorable, without_mark
from app.transcripts.admission.door import Admission, admit
from app.transcripts.admission.entries import Optional
from app.transcripts.admission.nesting import LONGEST_INTEGER, deeper_than, long_integer, may_have_long_integer
from app.transcripts.admission.redaction import names_credentials
from app.transcripts.admission.spans import members
from app.transcripts.admission.wording import kind
from app.transcripts.model import Violation, Warning_
from app.transcripts.text import sanitise

MOST_VIOLATIONS = 100
"""Violations that are told."""

_CONVERSATIONS = "conversations"
_CONTAINERS = ("messages", "items")
_KNOWN = (_CONVERSATIONS, *MEMBERS)
_CONVERSATION_DEPTH = MAX_DEPTH - 2
_MEMBER_DEPTH = MAX_DEPTH - 1
_NUL = rb"\u0000"
_TELLING_ESCAPE = re.compile(rb"\\u00(?:00|[4-7])")
"""NUL, or a letter that need not be escaped. One search of 30 MB instead of two, and nearly always in vain."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What is wrong with a body, in document order. ``count`` is exact, or None when nobody counted any further."""

    violations: tuple[Violation, ...]
    count: int | None
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """A body that breaks no rule. ``conversations`` says of each what the door knows, ``received`` yields its bytes."""

    request: EvaluationRequest
    conversations: tuple[Admission, ...]
    received: Iterable[bytes] = field(repr=False)
    warnings: tuple[EvaluationWarning, ...] = ()


class _Root(Struct, gc=False):
    conversations: Optional = UNSET
    name: Optional = UNSET
    metadata: Optional = UNSET
    target: Optional = UNSET
    judges: Optional = UNSET
    options: Optional = UNSET
    webhook: Optional = UNSET


_root = msgspec.json.Decoder(_Root).decode


def read(body: bytes, rules: RequestRules) -> Reading | Refusal:
    """Read a whole request body.

    Args:
        body: as received.
        rules: what a request may ask for here.
    """
    received = without_mark(body)
    unreadable = encoding_fault(received)
    if unreadable is not None:
        return _unreadable(unreadable)
    plain = _TELLING_ESCAPE.search(received) is None
    text = received if plain or _NUL not in received else replace_unstorable(received)
    try:
        try:
            root = _root(text)
        except msgspec.DecodeError:
            text = replace_unstorable(received)
            root = _root(text)
    except msgspec.ValidationError:
        return Refusal((_not_an_object(text),), 1)
    except (msgspec.DecodeError, RecursionError) as error:
        return _unreadable(fault(text, error))
    credentials = not plain or names_credentials(received)
    reader = _Reader(text, received, root, rules, credentials=credentials)
    found = reader.violations()
    told = tuple(itertools.islice(found, MOST_VIOLATIONS))
    if not told:
        return reader.reading()
    count = len(told) + sum(1 for _ in itertools.islice(found, MOST_COUNTED - len(told) + 1))
    return Refusal(told, count if count <= MOST_COUNTED else None)


class _Reader:
    """Walks the members of a body in the order in which they stand there."""

    def __init__(self, text: bytes, received: bytes, root: _Root, rules: RequestRules, *, credentials: bool) -> None:
        self._text = text
        self._received = received
        self._root = root
        self._rules = rules
        self._values: dict[str, Any] = {}
        self._admissions: list[Admission] = []
        self._conversations: Conversations | None = None
        self._warnings = Warnings()
        self._long_integers = may_have_long_integer(text)
        self._credentials = credentials

    def reading(self) -> Reading:
        """Return what was read, once ``violations`` has yielded nothing."""
        request = EvaluationRequest(**self._values)
        self._warnings.add_unheeded(request)
        received: Iterable[bytes] = () if self._conversations is None else self._conversations.received
        return Reading(request, tuple(self._admissions), received, self._warnings.listed())

    def violations(self) -> Iterator[Violation]:
        """Yield everything that is wrong, in document order."""
        spans, unknown = self._members()
        if _CONVERSATIONS not in spans:
            message = 'the body needs "conversations", a non-empty array of conversations'
            yield Violation((), "missing", message)
        for key, (start, end) in sorted((spans | unknown).items(), key=lambda member: member[1]):
            if key in unknown:
                yield _unknown(key)
            elif key == _CONVERSATIONS:
                yield from self._read_conversations(start)
            else:
                yield from self._read_member(key, start, end)
        for name in MEMBERS:
            if name not in spans:
                self._values[name], _ = read_member(name, b"null", self._rules)

    def _members(self) -> tuple[dict[str, tuple[int, int]], dict[str, tuple[int, int]]]:
        """Return where known and unknown members stand; of the unknown no more than anybody wants to know."""
        values = ((name, getattr(self._root, name)) for name in _KNOWN)
        known = {name: value for name, value in values if value is not UNSET}
        spans: dict[str, tuple[int, int]] = {}
        unknown: dict[str, tuple[int, int]] = {}
        for key, start, end in members(self._text, len(self._text) - len(self._text.lstrip()), known):
            if key in spans:
                message = f"the body repeats the key {key!r}; its last value counts"
                self._warnings.add(None, Warning_(f"/{key}", "repeated_key", message))
            if key in _KNOWN:
                spans[key] = start, end
            else:
                unknown[key] = start, end
            if len(unknown) > MOST_COUNTED:
                break
        return spans, unknown

    def _read_member(self, name: str, start: int, end: int) -> Iterator[Violation]:
        raw = self._text[start:end]
        limits = list(self._limits(raw, _MEMBER_DEPTH))
        yield from (Violation((name, *each.loc), each.code, f"{name}: {each.message}") for each in limits)
        if limits:
            return
        if raw != self._received[start:end]:
            replaced = sanitise(self._received[start:end])[1]
            message = "NUL characters and lone surrogates are read as U+FFFD"
            self._warnings.add(None, Warning_(f"/{name}", "replaced_characters", message, replaced))
        self._values[name], found = read_member(name, raw, self._rules)
        yield from found

    def _read_conversations(self, start: int) -> Iterator[Violation]:
        array = self._root.conversations
        if not isinstance(array, Raw) or bytes(memoryview(array)[:1]) != b"[":
            found = kind(self._text[start : start + 1])
            yield Violation((_CONVERSATIONS,), "wrong_type", f"conversations must be an array, not {found}")
            return
        received = None if self._text is self._received else self._received
        self._conversations = Conversations(array, start, received)
        index = -1
        for index, (text, came) in enumerate(self._conversations):
            outcome = self._read_conversation(text, came)
            if isinstance(outcome, Admission):
                self._admissions.append(outcome)
                if outcome.warnings:
                    self._warnings.add_all(index, outcome.warnings)
            else:
                yield from (Violation((_CONVERSATIONS, index, *each.loc), each.code, each.message) for each in outcome)
        if index < 0:
            yield Violation((_CONVERSATIONS,), "empty", "conversations must not be empty")

    def _read_conversation(self, text: bytes, received: bytes) -> Admission | Iterator[Violation]:
        if text is received:
            outcome = admit(text, credentials=self._credentials)
        else:
            outcome = admit(text, received=received, replaced=sanitise(received)[1], credentials=self._credentials)
        limits = tuple(self._limits(text, _CONVERSATION_DEPTH)) if len(text) > 2 * _CONVERSATION_DEPTH else ()
        if not limits:
            return outcome
        return iter(limits) if isinstance(outcome, Admission) else itertools.chain(limits, outcome)

    def _limits(self, text: bytes, depth: int) -> Iterator[Violation]:
        if deeper_than(text, depth):
            yield Violation((), "nesting_too_deep", f"arrays and objects nest deeper than {MAX_DEPTH}")
        if self._long_integers and long_integer(text) is not None:
            yield Violation((), "number_too_long", f"an integer has more than {LONGEST_INTEGER} digits")


def _unknown(key: str) -> Violation:
    if key in _CONTAINERS:
        return Violation((key,), "unknown_key", f'"{key}" belongs inside an entry of "conversations"')
    place = Place(())
    refuse_unknown(place, key, _KNOWN)
    return place.found[0]


def _unreadable(why: Fault) -> Refusal:
    return Refusal((Violation((), why.code, why.message),), 1, why.line, why.column)


def _not_an_object(text: bytes) -> Violation:
    found = kind(text.lstrip()[:1])
    message = f"the body must be an object, not {found}"
    if found == "an array":
        message += '; wrap it: {"conversations": [...]}'
    return Violation((), "wrong_type", message)
