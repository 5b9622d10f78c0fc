"""The door: whether one conversation may come in, decided without building it.

A body of 30 MB may hold half a million conversations or one of two million items, so the door decodes only what its
rules need, with the compiled decoder, and lets everything else stay text. What passes is normalised later, by
``parsing``; what does not is read a second time by ``violations``, which can afford to say what is wrong.

The text has been checked as a whole before: it is UTF-8 and valid JSON, is not nested too deep, and holds neither NUL
nor lone surrogate escapes.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from app.transcripts.admission.entries import Conversation, Item, Message, lenient, strict, string
from app.transcripts.admission.redaction import Redacted, may_have_credentials, redact
from app.transcripts.admission.violations import violations
from app.transcripts.admission.wording import kind
from app.transcripts.model import Violation, Warning_
from app.transcripts.notes import Notes

Format: TypeAlias = Literal["messages", "items"]
LONGEST_ID = 512
"""Characters of a conversation's own id; a longer one is kept in the bytes but not shown."""
LARGEST_METADATA = 16 * 1024
"""Bytes of a conversation's own metadata, as JSON; more are kept in the bytes but not shown."""

_KNOWN_ROLES = frozenset({"user", "assistant", "system", "developer"})
_NO_TOOL_CALLS = (b"null", b"[]")


@dataclass(frozen=True, slots=True)
class Admission:
    """A conversation that may come in."""

    format: Format
    client_id: str | None = None
    metadata: str | None = None
    """The client's own metadata, a JSON object."""
    redacted: bytes | None = field(default=None, repr=False)
    """The bytes to keep where credentials were cut out; None: keep what was received."""
    redactions: tuple[str, ...] = ()
    warnings: tuple[Warning_, ...] = ()


_PLAIN: dict[Format, Admission] = {"messages": Admission("messages"), "items": Admission("items")}


class _NotAdmittedError(Exception):
    """A rule is broken."""


def admit(
    text: bytes, *, received: bytes | None = None, replaced: int = 0, credentials: bool = True
) -> Admission | Iterator[Violation]:
    """Check one conversation.

    Args:
        text: the conversation as JSON, NUL and lone surrogate escapes replaced.
        received: the bytes as they came, where they differ from ``text``.
        replaced: how many escapes were replaced.
        credentials: False when it is known that no key of the text names a credential.

    Returns:
        What is known of it at the door, or why it may not come in: at least one violation, each found when asked for.
    """
    try:
        read = strict(text)
        admission = _admission(read)
    except (msgspec.ValidationError, _NotAdmittedError):
        broken = violations(text)
        first = next(broken, None)
        if first is not None:
            return itertools.chain((first,), broken)
        read = lenient(text)
        admission = _admission(read)
    came = text if received is None else received
    cut = redact(came) if credentials and may_have_credentials(came) else None
    if cut is None and not replaced and read.id is UNSET and read.metadata is UNSET:
        return admission
    return _with_details(admission, read, cut, replaced)


def _admission(read: Conversation) -> Admission:
    """Apply the rules that concern more than one entry; raise at the first that is broken."""
    if read.expectations is not UNSET:
        raise _NotAdmittedError
    if not isinstance(read.messages, UnsetType):
        if read.items is not UNSET:
            raise _NotAdmittedError
        return _messages(read.messages)
    if isinstance(read.items, UnsetType):
        raise _NotAdmittedError
    return _items(read.items)


def _messages(entries: Sequence[Message]) -> Admission:
    for entry in entries:
        if entry.role == "assistant":
            break
    else:
        raise _NotAdmittedError
    for entry in entries:
        if entry.tool_calls is not UNSET:
            return _with_tool_calls(entries)
    return _PLAIN["messages"]


def _with_tool_calls(entries: Sequence[Message]) -> Admission:
    calls = [
        (index, bytes(entry.tool_calls)) for index, entry in enumerate(entries) if isinstance(entry.tool_calls, Raw)
    ]
    called = [index for index, each in calls if each not in _NO_TOOL_CALLS]
    if not called:
        return _PLAIN["messages"]
    notes = Notes()
    notes.add("chat_tool_calls_ignored", "messages", called[0], "tool_calls", count=len(called))
    return Admission("messages", warnings=notes.warnings())


def _items(entries: Sequence[Item]) -> Admission:
    roles = {entry.role for entry in entries if entry.type == "message"}
    if "assistant" not in roles:
        raise _NotAdmittedError
    if roles <= _KNOWN_ROLES:
        return _PLAIN["items"]
    notes = Notes()
    for index, entry in enumerate(entries):
        if entry.type != "message" or entry.role in _KNOWN_ROLES:
            continue
        if entry.role is None:
            notes.add("missing_role", "items", index)
        else:
            notes.add("unknown_role", "items", index, "role", detail=entry.role)
    return Admission("items", warnings=notes.warnings())


def _with_details(plain: Admission, read: Conversation, cut: Redacted | None, replaced: int) -> Admission:
    """Add what was noticed besides the rules."""
    warnings = list(plain.warnings)
    if replaced:
        notes = Notes()
        notes.add("replaced_characters", count=replaced)
        warnings += notes.warnings()
    client_id, metadata = _client_id(read, warnings), _metadata(read, warnings)
    if cut is not None:
        message = 'credentials of tool entries were replaced by "[redacted]" before storing'
        warnings.append(Warning_(cut.pointers[0], "credentials_redacted", message, cut.count))
    return Admission(
        plain.format,
        client_id,
        metadata,
        cut.kept if cut else None,
        cut.pointers if cut else (),
        tuple(warnings),
    )


def _client_id(read: Conversation, warnings: list[Warning_]) -> str | None:
    raw = bytes(read.id) if isinstance(read.id, Raw) else b"null"
    if raw == b"null":
        return None
    if not raw.startswith(b'"'):
        warnings.append(Warning_("/id", "id_ignored", f"id must be a string, not {kind(raw)}; it is ignored"))
        return None
    client_id = string(raw)
    if len(client_id) > LONGEST_ID:
        warnings.append(Warning_("/id", "id_ignored", f"id is longer than {LONGEST_ID} characters; it is ignored"))
        return None
    return client_id


def _metadata(read: Conversation, warnings: list[Warning_]) -> str | None:
    raw = bytes(read.metadata) if isinstance(read.metadata, Raw) else b"null"
    if raw == b"null":
        return None
    if raw.startswith(b"{") and len(raw) <= LARGEST_METADATA:
        return raw.decode()
    wrong = f"metadata must be an object, not {kind(raw)}"
    if raw.startswith(b"{"):
        wrong = f"metadata is larger than {LARGEST_METADATA} bytes"
    warnings.append(Warning_("/metadata", "metadata_ignored", f"{wrong}; it is ignored"))
    return None
