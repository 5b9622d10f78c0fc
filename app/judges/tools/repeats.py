"""Which calls could not have brought anything new, as far as code can tell. When in doubt, a call is not a repeat.

* **The same call**: the same tool of the same server with equal arguments, whatever their spelling and order of keys.
* **Nothing changed between**: no call in between that may have changed anything: every call does, unless it failed,
  was denied, or its tool's name begins with a reading verb (``get_user``, ``listFiles``) and holds no changing one.
* **A repeat**: the same call again with an equal result and nothing changed between. A tool that does not read may
  have been meant twice (``press_key``, ``add_item``): such a call is a repeat only if it failed again, or, as a weaker
  case, if it returned more than an acknowledgement, twice the same.
* **A weaker case**: a reason for asking again is at hand. The user spoke in between, the tool or its result speaks of
  waiting (a poll), the failure reads as if it would pass, or the agent's context was compacted.
* **A retry loop**: the same call failing three times or more within a turn, nothing changed between.
"""

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from app.judges.tools.calls import arguments_text
from app.transcripts.model import Json, ToolCall, Transcript

LOOP = 3
"""Failing calls that make a retry loop."""


def _words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


_READING = _words_of("""
    calculate check compute convert count describe fetch find get list lookup look query read retrieve search show think
    view
""")
_CHANGING = _words_of("""
    add and append book cancel clear create delete edit in increment insert next or out pop post put remove replace
    reset send set submit then update upsert write
""")
_WAITING = _words_of("await check now ping poll progress ready refresh status time wait watch")
_READING_HOSTED = frozenset({"web_search", "file_search"})
_STATEFUL_KINDS = frozenset({"computer", "multi_agent"})
"""Acting on a screen or on other agents: what such a call finds depends on what it did before."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PENDING = re.compile(
    r"\b(?:pending|in[ _-]?progress|queued|running|processing|not[ _-]ready|waiting)\b", re.IGNORECASE
)
_PASSING = re.compile(
    r"time[ds]?[ _-]?out|temporar|unavailable|overloaded|rate[ _-]?limit|too many requests|try(?:ing)? again|"
    r"retry|connection|\b(?:429|50[234])\b",
    re.IGNORECASE,
)
_LOOKED_AT = 2_000
_LONGEST_COMPARED = 100_000
"""Characters of arguments; longer ones are the same only if they are spelt the same."""
_ACKNOWLEDGEMENT = 40
"""Characters of a result that may say no more than that something was done."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """Calls that are one and the same, in order; all but the first are redundant."""

    kind: Literal["identical_repeat", "identical_recheck", "retry_loop"]
    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class Repeats:
    """What was found. ``unsettled`` calls repeat an earlier one, but a result needed to compare is not recorded."""

    found: tuple[Repeat, ...]
    unsettled: tuple[ToolCall, ...]


def find_repeats(transcript: Transcript) -> Repeats:
    """Return every group of redundant calls, in order; no call is in two of them."""
    found: list[Repeat] = []
    unsettled: list[ToolCall] = []
    for stretch in _stretches(transcript):
        if stretch[0].kind in _STATEFUL_KINDS:
            continue
        loops = list(_loops(stretch))
        looped = {call.event for loop in loops for call in loop.calls}
        rest = [call for call in stretch if call.event not in looped]
        found += [*loops, *_same_results(rest, lenient=transcript.context_incomplete)]
        if len(rest) > 1:
            unsettled += [call for call in rest if not call.output_available]
    return Repeats(tuple(sorted(found, key=lambda repeat: repeat.calls[0].event)), tuple(unsettled))


def _stretches(transcript: Transcript) -> Iterator[list[ToolCall]]:
    """Yield the lists of equal calls between which nothing changed."""
    open_stretches: dict[tuple[str | None, ...], list[ToolCall]] = {}
    last_change = -1
    for call in transcript.judged_calls:
        key = _key(transcript, call)
        stretch = open_stretches.get(key)
        if stretch is not None and last_change <= stretch[-1].event:
            stretch.append(call)
        else:
            if stretch is not None:
                yield stretch
            open_stretches[key] = [call]
        if not (_has_failed(call) or call.outcome == "denied" or _reads(call)):
            last_change = call.event
    yield from open_stretches.values()


def _loops(stretch: Sequence[ToolCall]) -> Iterator[Repeat]:
    for (failed, _), group in itertools.groupby(stretch, key=lambda call: (_has_failed(call), call.turn)):
        calls = tuple(group)
        if failed and len(calls) >= LOOP:
            passing = any(_may_pass(call) for call in calls)
            yield Repeat("identical_recheck" if passing else "retry_loop", calls)


def _same_results(stretch: Sequence[ToolCall], *, lenient: bool) -> Iterator[Repeat]:
    recorded = [call for call in stretch if call.output_available]
    if len(recorded) < 2:  # noqa: PLR2004 - a repeat takes two
        return
    for _, group in itertools.groupby(recorded, key=lambda call: call.output):
        calls = tuple(group)
        weights = {_weight(before, after) for before, after in itertools.pairwise(calls)}
        if weights and None not in weights:
            plain = "identical_repeat" in weights and not lenient
            yield Repeat("identical_repeat" if plain else "identical_recheck", calls)


def _weight(before: ToolCall, after: ToolCall) -> Literal["identical_repeat", "identical_recheck"] | None:
    """Say how plain it is that ``after``, with the same result as ``before``, was for nothing; None: it is not."""
    failed = _has_failed(after)
    if not failed and not _reads(after) and len(_text(after.output)) <= _ACKNOWLEDGEMENT:
        return None
    excused = before.turn != after.turn or _polls(after) or (failed and _may_pass(after))
    return "identical_recheck" if excused or not (failed or _reads(after)) else "identical_repeat"


def _key(transcript: Transcript, call: ToolCall) -> tuple[str | None, ...]:
    text = arguments_text(transcript, call)
    as_written = call.arguments is None or len(text) > _LONGEST_COMPARED
    return call.kind, call.server_label, call.tool_name, text if as_written else _canonical(call.arguments)


def _canonical(value: Json) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _text(output: Json) -> str:
    return output if isinstance(output, str) else _canonical(output)


def _has_failed(call: ToolCall) -> bool:
    return call.outcome in ("failed", "suspected_failure")


def _may_pass(call: ToolCall) -> bool:
    return _PASSING.search(f"{call.error or ''} {_text(call.output)[:_LOOKED_AT]}") is not None


def _polls(call: ToolCall) -> bool:
    return not _WAITING.isdisjoint(_words(call)) or _PENDING.search(_text(call.output)[:_LOOKED_AT]) is not None


def _reads(call: ToolCall) -> bool:
    if call.kind == "hosted":
        return call.tool_name in _READING_HOSTED
    words = _words(call)
    return bool(words) and words[0] in _READING and _CHANGING.isdisjoint(words)


def _words(call: ToolCall) -> list[str]:
    name = (call.tool_name or "").rpartition(".")[2]
    return [word.lower() for word in _WORD.findall(name)]
