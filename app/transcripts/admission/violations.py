"""Everything that is wrong with a conversation which the door did not let in, in document order.

Violations come one by one, so that whoever has seen enough can stop asking: a body of a million wrong messages costs
no more than its first few.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping

from app.transcripts.admission.entries import conversation_members, entries, entry_members, string
from app.transcripts.admission.wording import kind, quoted, suggestion
from app.transcripts.model import Violation

_CONTAINERS = ("messages", "items")
_ROLES = ("user", "assistant")
_RESPONSES_ROLES = ("system", "developer", "tool", "function")

_LOOK_AHEAD = 1000
"""With so many wrong entries, nobody waits for the whole list to be searched for a reply."""

Violations = Iterator[Violation]


def violations(text: bytes) -> Violations:
    """Yield the rules that a conversation breaks; nothing when it breaks none.

    Args:
        text: valid JSON, without leading white space.
    """
    if not text.startswith(b"{"):
        yield Violation((), "wrong_type", f"a conversation must be an object, not {kind(text)}")
        return
    found = conversation_members(text)
    yield from _containers(text, found)
    for name, raw in found.items():
        if name in _CHECKS and (name != "tools" or "messages" not in found):
            yield from _CHECKS[name](raw)


def _containers(text: bytes, found: Mapping[str, bytes]) -> Violations:
    count = sum(name in found for name in _CONTAINERS)
    if count > 1:
        message = 'a conversation has either "messages" (Chat Completions) or "items" (Responses API), not both'
        yield Violation((), "both_containers", message)
    elif not count:
        message = 'a conversation needs "messages" (Chat Completions) or "items" (Responses API)'
        yield Violation((), "no_container", message)


def _messages(raw: bytes) -> Violations:
    lacking = Violation(("messages",), "no_assistant_turn", "messages must hold at least one assistant turn")
    return _listed("messages", raw, _message, lambda entry: _string(entry, "role") == "assistant", lacking)


def _listed(
    name: str,
    raw: bytes,
    check: Callable[[int, bytes], Violations],
    is_reply: Callable[[bytes], bool],
    lacking: Violation,
) -> Violations:
    """Check a list and its entries; ``lacking`` comes first, as long as few entries are wrong, when none is a reply."""
    if not raw.startswith(b"["):
        yield Violation((name,), "wrong_type", f"{name} must be an array, not {kind(raw)}")
        return
    replied = False
    index = -1

    def entry_violations() -> Violations:
        nonlocal replied, index
        for index, entry in enumerate(entries(raw)):
            replied = replied or is_reply(entry)
            if entry.startswith(b"{"):
                yield from check(index, entry)
            else:
                message = f"{name}[{index}] must be an object, not {kind(entry)}"
                yield Violation((name, index), "wrong_type", message)

    found = entry_violations()
    first = list(itertools.islice(found, _LOOK_AHEAD))
    if index < 0:
        yield Violation((name,), "empty", f"{name} must not be empty")
    elif not replied and len(first) < _LOOK_AHEAD:
        yield lacking
    yield from first
    yield from found


def _message(index: int, entry: bytes) -> Violations:
    found = entry_members(entry)
    for name in ("role", "content"):
        if name not in found:
            yield Violation(("messages", index), "missing", f"messages[{index}]: {name} is missing")
    for name, raw in found.items():
        if name == "role":
            yield from _message_role(index, raw)
        elif name == "content":
            yield from _message_content(index, raw)


def _message_role(index: int, raw: bytes) -> Violations:
    place = f"messages[{index}].role"
    if not raw.startswith(b'"'):
        message = f'{place} must be "user" or "assistant", not {kind(raw)}'
        yield Violation(("messages", index, "role"), "wrong_type", message)
        return
    role = string(raw)
    if role in _ROLES:
        return
    message = f'{place} is {quoted(role)}, but messages only take "user" and "assistant"'
    if role in _RESPONSES_ROLES:
        message += '; send this conversation in the Responses format ("items")'
    else:
        message += suggestion(role, _ROLES)
    yield Violation(("messages", index, "role"), "role_not_allowed", message)


def _message_content(index: int, raw: bytes) -> Violations:
    place = f"messages[{index}].content"
    if raw == b'""':
        yield Violation(("messages", index, "content"), "empty", f"{place} must not be empty")
    elif not raw.startswith(b'"'):
        message = f"{place} must be a non-empty string, not {kind(raw)}"
        if raw.startswith(b"["):
            message += '; lists of content parts belong to the Responses format ("items")'
        yield Violation(("messages", index, "content"), "wrong_type", message)


def _items(raw: bytes) -> Violations:
    message = 'items must hold at least one assistant message: "type": "message" with "role": "assistant"'
    return _listed("items", raw, _item, _is_reply, Violation(("items",), "no_assistant_turn", message))


def _item(index: int, entry: bytes) -> Violations:
    place = f"items[{index}]"
    found = entry_members(entry)
    raw = found.get("type")
    if raw is None:
        message = f"{place}: type is missing; every item needs a non-empty string"
        if "role" in found:
            message = f'{place}: has role but no type; add "type": "message"'
        yield Violation(("items", index), "missing", message)
    elif raw == b'""':
        yield Violation(("items", index, "type"), "empty", f"{place}.type must not be empty")
    elif not raw.startswith(b'"'):
        message = f"{place}.type must be a non-empty string, not {kind(raw)}"
        yield Violation(("items", index, "type"), "wrong_type", message)


def _tools(raw: bytes) -> Violations:
    if not raw.startswith(b"["):
        yield Violation(("tools",), "wrong_type", f"tools, if present, must be an array of objects, not {kind(raw)}")
        return
    for index, entry in enumerate(entries(raw)):
        if not entry.startswith(b"{"):
            yield Violation(("tools", index), "wrong_type", f"tools[{index}] must be an object, not {kind(entry)}")


def _expectations(_: bytes) -> Violations:
    message = "expectations are not judged by this version; remove them, or the result would ignore what you expect"
    yield Violation(("expectations",), "expectations_unsupported", message)


_CHECKS: Mapping[str, Callable[[bytes], Violations]] = {
    "messages": _messages,
    "items": _items,
    "tools": _tools,
    "expectations": _expectations,
}


def _is_reply(entry: bytes) -> bool:
    return _string(entry, "type") == "message" and _string(entry, "role") == "assistant"


def _string(entry: bytes, name: str) -> str | None:
    raw = entry_members(entry).get(name, b"") if entry.startswith(b"{") else b""
    return string(raw) if raw.startswith(b'"') else None
