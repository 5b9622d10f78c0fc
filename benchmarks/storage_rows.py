"""Rows of the usual shape and size for the benchmark of the store, made before anything is timed."""

import hashlib
import random

import zstandard

from app.evaluation.model import NewConversation
from app.findings.model import Coverage, Evidence, Finding, Subject, Usage, Verdict, failed

PER_VERDICT = 5
"""Findings."""


def some_conversations(number: int) -> list[NewConversation]:
    """Return conversations of about 3 KB whose text compresses as text does."""
    words = [bytes(random.choices(b"abcdefghijklmnopqrstuvwxyz", k=random.randint(2, 9))) for _ in range(2_000)]
    compress = zstandard.ZstdCompressor(level=3).compress
    made = []
    for index in range(number):
        raw = b'{"items":[' + b" ".join(random.choices(words, k=480)) + b"]}"
        digest = hashlib.sha256(raw).hexdigest()
        made.append(NewConversation(index, "items", compress(raw), len(raw), digest, digest, client_id=f"c{index}"))
    return made


def some_verdict(number: int) -> Verdict:
    """Return a failed verdict about a call, with findings of the usual length."""
    found = tuple(
        Finding(
            "wrong_value",
            "medium",
            "The order number was changed",
            "The user named order A-1042, the call was made with A-1024. " * 4,
            "The wrong parcel would be stopped. " * 3,
            (
                Evidence("items", 7, "/arguments", 10, 16, "A-1024"),
                Evidence("items", 2, "/content/0/text", 31, 37, "A-1042", "support"),
            ),
            event=7,
            turn=1,
        )
        for _ in range(PER_VERDICT)
    )
    return Verdict(
        "argument_justification",
        "tool",
        "1",
        Subject("call", 1, number, f"call_{number}"),
        "binary",
        None,
        failed("It does not say so. " * 10, found, coverage=Coverage(9, 9), usage=Usage(1, 900, 0, 90, 0.001)),
    )
