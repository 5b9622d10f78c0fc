"""Bodies for tests: how they are written down, and what a plain reading of the rules says about them.

The reference knows nothing of how the product does it: it decodes the whole body with the standard library and walks
the result.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from app.pipeline.values import Rules

RULES = Rules(judges={"alpha": True, "beta": True, "gamma": False}, models=("m-small", "m-large"))
REPLY = {"role": "assistant", "content": "In Turin."}
ITEM_REPLY = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "In Turin."}]}
CHAT = {"messages": [{"role": "user", "content": "Where is parcel 7?"}, REPLY]}
ITEMS = {"items": [{"type": "message", "role": "user", "content": "Where is parcel 7?"}, ITEM_REPLY]}

Loc = tuple[str | int, ...]
Found = tuple[Loc, str]


def body(*conversations: Any, **members: Any) -> bytes:
    return json.dumps({"conversations": list(conversations), **members}).encode()


@dataclass(frozen=True)
class Pairs:
    """An object that may repeat its keys."""

    members: Sequence[tuple[str, Any]]


def written(value: Any, gap: str = "", *, ascii_only: bool = True) -> str:
    """Return JSON text with ``gap`` wherever white space is possible."""
    if isinstance(value, dict):
        value = Pairs(list(value.items()))
    if isinstance(value, Pairs):
        inner = (f"{json.dumps(key)}{gap}:{written(item, gap, ascii_only=ascii_only)}" for key, item in value.members)
        text = "{" + f",{gap}".join(inner) + "}"
    elif isinstance(value, list):
        text = "[" + f",{gap}".join(written(item, gap, ascii_only=ascii_only) for item in value) + "]"
    else:
        text = json.dumps(value, ensure_ascii=ascii_only)
    return gap + text + gap


def reference(text: str) -> list[Found]:
    """Return what is wrong with a body that is JSON, by the letter of the rules, for conversations and unknown keys."""
    value = json.loads(text)
    if not isinstance(value, dict):
        return [((), "wrong_type")]
    found: list[Found] = [((key,), "unknown_key") for key in value if key not in {"conversations", "name"}]
    if "conversations" not in value:
        return [*found, ((), "missing")]
    conversations = value["conversations"]
    if not isinstance(conversations, list):
        return [*found, (("conversations",), "wrong_type")]
    if not conversations:
        return [*found, (("conversations",), "empty")]
    for index, conversation in enumerate(conversations):
        found += ((("conversations", index, *loc), code) for loc, code in _conversation(conversation))
    return found


def _conversation(value: Any) -> Iterator[Found]:
    if not isinstance(value, dict):
        yield (), "wrong_type"
        return
    containers = [key for key in ("messages", "items") if key in value]
    if len(containers) != 1:
        yield (), "both_containers" if containers else "no_container"
    if "expectations" in value:
        yield ("expectations",), "expectations_unsupported"
    if "messages" in value:
        yield from _messages(value["messages"])
    if "items" in value:
        yield from _items(value["items"])
    if "tools" in value and "messages" not in value:
        yield from _tools(value["tools"])


def _tools(value: Any) -> Iterator[Found]:
    if not isinstance(value, list):
        yield ("tools",), "wrong_type"
    else:
        yield from ((("tools", index), "wrong_type") for index, each in enumerate(value) if not isinstance(each, dict))


def _messages(value: Any) -> Iterator[Found]:
    if not isinstance(value, list) or not value:
        yield ("messages",), "wrong_type" if not isinstance(value, list) else "empty"
        return
    if not any(isinstance(each, dict) and each.get("role") == "assistant" for each in value):
        yield ("messages",), "no_assistant_turn"
    for index, each in enumerate(value):
        if isinstance(each, dict):
            yield from ((("messages", index, *loc), code) for loc, code in _message(each))
        else:
            yield ("messages", index), "wrong_type"


def _message(value: dict[str, Any]) -> Iterator[Found]:
    for key in ("role", "content"):
        if key not in value:
            yield (), "missing"
        elif not isinstance(value[key], str):
            yield (key,), "wrong_type"
        elif key == "content" and not value[key]:
            yield (key,), "empty"
        elif key == "role" and value[key] not in {"user", "assistant"}:
            yield (key,), "role_not_allowed"


def _items(value: Any) -> Iterator[Found]:
    if not isinstance(value, list) or not value:
        yield ("items",), "wrong_type" if not isinstance(value, list) else "empty"
        return
    replies = [each for each in value if isinstance(each, dict) and each.get("type") == "message"]
    if not any(each.get("role") == "assistant" for each in replies):
        yield ("items",), "no_assistant_turn"
    for index, each in enumerate(value):
        place = ("items", index)
        if not isinstance(each, dict):
            yield place, "wrong_type"
        elif "type" not in each:
            yield place, "missing"
        elif not isinstance(each["type"], str):
            yield (*place, "type"), "wrong_type"
        elif not each["type"]:
            yield (*place, "type"), "empty"


def resolves(document: Any, loc: Loc) -> bool:
    """Return whether a place is in a decoded document."""
    for token in loc:
        try:
            document = document[token]
        except (KeyError, IndexError, TypeError):
            return False
    return True


def position(document: Any, loc: Loc) -> tuple[int, ...]:
    """Return where a place stands, such that places sort in document order."""
    path: list[int] = []
    for token in loc:
        path.append(list(document).index(token) if isinstance(document, dict) else int(token))
        document = document[token]
    return tuple(path)
