"""Turns: a request of the user, everything the agent did about it, and which of its messages is the answer.

A user message opens a turn; further ones join it until the agent has done anything (said, called, received, thought).
What precedes the first user message belongs to turn 0. The **reply** of a turn is all the assistant says after the
user's last word in it, without commentary where a final answer exists; when it said nothing after its last call or
result, the last message before stands for it, and is flagged.
"""

from collections.abc import Sequence

from app.transcripts.model import Event, EventKind, ToolCall, Turn

_AGENT: frozenset[EventKind] = frozenset({"assistant", "call", "output", "reasoning"})


class TurnCounter:
    """Says which turn each event belongs to, asked in order."""

    def __init__(self) -> None:
        self._turn = 0
        self._user_spoke = False
        self._agent_acted = False

    def next(self, kind: EventKind) -> int:
        """Return the turn of the next event, which is of this kind."""
        if kind == "user":
            if self._user_spoke and self._agent_acted:
                self._turn += 1
            self._user_spoke, self._agent_acted = True, False
        elif kind in _AGENT:
            self._agent_acted = True
        return self._turn


def build_turns(events: Sequence[Event], calls: Sequence[ToolCall]) -> tuple[Turn, ...]:
    """Return the turns that ``events`` were counted into."""
    events_of: list[list[Event]] = [[] for _ in range(events[-1].turn + 1)]
    calls_of: list[list[int]] = [[] for _ in events_of]
    for event in events:
        if event.kind != "unknown":
            events_of[event.turn].append(event)
    for number, call in enumerate(calls):
        calls_of[call.turn].append(number)
    return tuple(
        _turn(index, members, tuple(numbers))
        for index, (members, numbers) in enumerate(zip(events_of, calls_of, strict=True))
    )


def _turn(index: int, members: list[Event], calls: tuple[int, ...]) -> Turn:
    user = tuple(event.index for event in members if event.kind == "user")
    assistant = [event for event in members if event.kind == "assistant"]
    answers = [event for event in assistant if not user or event.index > user[-1]]
    if any(event.phase == "final_answer" for event in answers):
        answers = [event for event in answers if event.phase != "commentary"]
    last_result = max((event.index for event in members if event.kind in ("call", "output")), default=-1)
    premature = bool(answers) and answers[-1].index < last_result
    if premature:
        answers = answers[-1:]
    return Turn(
        index,
        user,
        tuple(event.index for event in assistant),
        tuple(event.index for event in answers),
        calls,
        premature,
    )
