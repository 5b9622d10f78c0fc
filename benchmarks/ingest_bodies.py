"""Bodies of nearly 30 MB: an ordinary one, and those that are made to hurt. All are written here, from a seed."""

import itertools
import json
import random
from collections.abc import Callable, Mapping
from typing import Any

LARGEST = 30 * 1024 * 1024
_WORDS = [
    "the",
    "a",
    "order",
    "parcel",
    "refund",
    "please",
    "confirm",
    "carrier",
    "customer",
    "number",
    "account",
    "payment",
    "was",
    "is",
    "not",
    "arrived",
    "delayed",
    "shipped",
    "Tuesday",
    "warehouse",
    "café",
    "naïve",
    "48231",
    "79.90",
    "EUR",
    "status",
    "update",
    "ticket",
    "resolved",
    "waiting",
    "transfer",
]


def ordinary() -> bytes:
    """About ten thousand conversations of some three kilobytes: two in three with tool calls, one in three chat."""
    rng = random.Random(20)
    kept: list[bytes] = []
    room = LARGEST - len(b'{"conversations":[]}')
    for number in itertools.count():
        conversation = _chat(rng) if number % 3 == 0 else _with_tools(rng, number)
        raw = json.dumps(conversation, ensure_ascii=bool(number % 2)).encode()
        room -= len(raw) + 1
        if room < 0:
            return _request(kept)
        kept.append(raw)
    raise AssertionError


def minimal() -> bytes:
    """As many conversations as 30 MB hold."""
    return _request([b'{"messages":[{"role":"assistant","content":"xxxxxxxxxx"}]}'] * 468_749)


def items() -> bytes:
    """One conversation of 2.3 million items that nobody knows."""
    reply = b'{"type":"message","role":"assistant","content":"x"},'
    return _request([b'{"items":[' + reply + b",".join([b'{"type":"a"}'] * 2_300_000) + b"]}"])


def empties() -> bytes:
    """Ten million empty objects inside one item that nobody knows."""
    reply = b'{"type":"message","role":"assistant","content":"x"},'
    inner = b",".join([b"{}"] * 10_000_000)
    return _request([b'{"items":[' + reply + b'{"type":"a","v":[' + inner + b"]}]}"])


def strings() -> bytes:
    """Nine conversations of one huge string each."""
    return _request([b'{"messages":[{"role":"assistant","content":"' + b"x" * 3_400_000 + b'"}]}'] * 9)


def wrong() -> bytes:
    """A million conversations, each wrong twice."""
    return _request([b'{"messages":[{"role":"x"}]}'] * 1_100_000)


def digits() -> bytes:
    """Runs of digits just short of too many, as text and as numbers."""
    run = b"9" * 4000
    said = b'{"messages":[{"role":"assistant","content":"' + b" ".join([run] * 250) + b'"}]}'
    counted = b'{"items":[{"type":"n","v":[' + b",".join([run] * 250) + b']},{"type":"message","role":"assistant"}]}'
    return _request([said, counted] * 14)


def with_lone_surrogate(body: bytes) -> bytes:
    """Return a body with one more conversation, which holds half a character."""
    return body.removesuffix(b"]}") + b',{"messages":[{"role":"assistant","content":"\\ud83d"}]}]}'


HOSTILE: Mapping[str, Callable[[], bytes]] = {
    "minimal": minimal,
    "items": items,
    "empties": empties,
    "strings": strings,
    "wrong": wrong,
    "digits": digits,
}


def _request(conversations: list[bytes]) -> bytes:
    return b'{"conversations":[' + b",".join(conversations) + b"]}"


def _text(rng: random.Random, words: int) -> str:
    return " ".join(rng.choices(_WORDS, k=words))


def _chat(rng: random.Random) -> dict[str, Any]:
    turns = rng.randrange(2, 6)
    return {
        "id": f"chat-{rng.randrange(10**9)}",
        "messages": [
            {"role": role, "content": _text(rng, rng.randrange(15, 90))}
            for _ in range(turns)
            for role in ("user", "assistant")
        ],
    }


def _with_tools(rng: random.Random, number: int) -> dict[str, Any]:
    names = ("lookup_order", "issue_refund", "send_mail")
    entries: list[dict[str, Any]] = [{"type": "message", "role": "user", "content": _text(rng, 40)}]
    for step in range(rng.randrange(1, 5)):
        call_id = f"call_{number}_{step}"
        arguments = json.dumps({"order_id": str(rng.randrange(10**6)), "reason": _text(rng, 6)})
        output = json.dumps({"status": "ok", "log": [_text(rng, 12) for _ in range(3)], "amount": 79.9})
        entries += (
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": _text(rng, 10)}]},
            {"type": "function_call", "call_id": call_id, "name": rng.choice(names), "arguments": arguments},
            {"type": "function_call_output", "call_id": call_id, "output": output},
        )
    entries.append(
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": _text(rng, 50)}]}
    )
    properties = {"order_id": {"type": "string"}, "reason": {"type": "string"}}
    schema = {"type": "object", "properties": properties, "required": ["order_id"]}
    tools = [
        {
            "type": "function",
            "name": name,
            "description": _text(rng, 8),
            "parameters": {**schema, "required": ["order_id"]},
        }
        for name in names
    ]
    return {"items": entries, "tools": tools}
