"""Which output answers which call. Ids are labels, not keys: real agents reuse them.

A quarter of the recorded gpt-4o tau-bench conversations repeat a ``call_id``, most of them for another tool or other
arguments; a dictionary keyed by id would attribute results to calls that never saw them. So an output closes the
*oldest open call* of its family with its id. Position is no criterion: text, other calls and other outputs may stand
between the two.

1. In order: by id; an output without one answers the oldest open call of the name it carries, or, carrying none, the
   only open call of its family.
2. What is left over may answer a call that stands after it: by id, then, without one, by name or as the only one open.
3. The rest are second outputs of calls that were answered already, or belong to no recorded call.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Step:
    """A call or an output, in the order of the recording."""

    event: int
    is_call: bool
    family: str
    key: str | None
    """The id that the two share; a call without one is known by its item's id."""
    item_id: str | None = None
    """A second id that a call is known by."""
    name: str | None = None
    certain: bool = True
    """Whether an output's key is sure to be its call's id and not its own."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """The result; every number is an event."""

    outputs: dict[int, int] = field(default_factory=dict)
    """Output of a call."""
    early: list[int] = field(default_factory=list)
    """Outputs that stand before their call."""
    second: dict[int, int] = field(default_factory=dict)
    """Call that an output answers once more, after it was answered already."""
    orphans: list[int] = field(default_factory=list)
    repeated: list[int] = field(default_factory=list)
    """Calls whose id an earlier call of their family carried."""


def pair(steps: Sequence[Step]) -> Pairing:
    """Pair the calls and outputs of one conversation. Linear in their number."""
    pairing = Pairing()
    families: dict[str, _Family] = {step.family: _Family() for step in steps}
    left: list[Step] = []
    for step in steps:
        family = families[step.family]
        if step.is_call:
            if step.key in family.by_key:
                pairing.repeated.append(step.event)
            family.open_call(step)
        elif (call := family.answered_by(step)) is not None:
            pairing.outputs[call] = step.event
        else:
            left.append(step)
    for step in left:
        _settle(step, families[step.family], pairing)
    return pairing


def _settle(step: Step, family: "_Family", pairing: Pairing) -> None:
    call = family.answered_by(step)
    if call is None and not step.certain:
        call = family.only_open()
    if call is not None:
        pairing.outputs[call] = step.event
        if step.event < call:
            pairing.early.append(step.event)
    elif step.key in family.closed:
        pairing.second[step.event] = family.closed[step.key]
    else:
        pairing.orphans.append(step.event)


class _Family:
    """The calls of one family, by everything an output may know them by."""

    def __init__(self) -> None:
        self.by_key: dict[str | None, deque[Step]] = {}
        self.closed: dict[str | None, int] = {}
        self._by_item: dict[str | None, deque[Step]] = {}
        self._by_name: dict[str | None, deque[Step]] = {}
        self._open: dict[int, Step] = {}

    def open_call(self, step: Step) -> None:
        self._open[step.event] = step
        for index, label in ((self.by_key, step.key), (self._by_item, step.item_id), (self._by_name, step.name)):
            if label is not None:
                index.setdefault(label, deque()).append(step)

    def answered_by(self, output: Step) -> int | None:
        if output.key is not None:
            call = self._oldest(self.by_key.get(output.key)) or self._oldest(self._by_item.get(output.key))
        elif output.name is not None:
            call = self._oldest(self._by_name.get(output.name))
        else:
            return self.only_open()
        return None if call is None else self._close(call)

    def only_open(self) -> int | None:
        return self._close(next(iter(self._open.values()))) if len(self._open) == 1 else None

    def _oldest(self, queue: deque[Step] | None) -> Step | None:
        # What another index has closed in the meantime is dropped here: each call is passed over once.
        while queue and queue[0].event not in self._open:
            queue.popleft()
        return queue[0] if queue else None

    def _close(self, call: Step) -> int:
        del self._open[call.event]
        if call.key is not None:
            self.closed[call.key] = call.event
        return call.event
