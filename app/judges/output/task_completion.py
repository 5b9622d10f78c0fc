"""Did the user get what they asked for? The first thing anybody wants to know of a recorded conversation.

A reply without content is settled by code before any model is asked: bare punctuation and openers such as
"Thought process:" are known to talk judge models into full marks.
"""

import unicodedata
from collections.abc import Sequence

from app.findings.evidence import whole
from app.findings.model import Decision, Subject, failed
from app.judges.asking import REASONS, ask
from app.judges.contract import Bench, Case, Judge
from app.judges.question import Fault, Level, Question
from app.judges.reporting import report
from app.transcripts.model import Transcript, Turn

QUESTION = Question(
    dimension="task_completion",
    text="Taken over the whole conversation, did the agent get done what the user asked for?",
    levels=(
        Level(
            "5",
            "Everything the user asked for was done or correctly answered; nothing is left that the agent could have "
            "settled.",
            passed=True,
            score=5,
        ),
        Level(
            "4",
            "Everything that matters was done; a detail is missing or imprecise and costs the user nothing.",
            passed=True,
            score=4,
            code="minor_gap",
        ),
        Level(
            "3",
            "The main request was done; a secondary request is open or the user has to take one more small step.",
            passed=True,
            score=3,
            code="minor_gap",
        ),
        Level(
            "2",
            "The main request was done only in part: the user has to ask again or do a good part themselves.",
            passed=False,
            score=2,
            code="request_partly_fulfilled",
        ),
        Level(
            "1",
            "The main request was not done or done wrongly, or the agent said it was done and the recording shows that "
            "it was not.",
            passed=False,
            score=1,
            code="request_not_fulfilled",
        ),
    ),
    faults={
        "request_not_fulfilled": Fault(
            "high", "The request was not fulfilled", "The user leaves without what they came for."
        ),
        "request_partly_fulfilled": Fault(
            "medium", "The request was fulfilled only in part", "The user has to ask again or finish the work."
        ),
        "empty_reply": Fault("high", "The reply has no content", "The user asked and was told nothing."),
        "minor_gap": Fault("info", "A detail is missing", "It costs the user little or nothing."),
    },
    guidance=(
        "Count every request of every turn, but not one that the user took back. An action counts as done when a call "
        "that succeeded did it; the agent's word alone is not enough where a tool was needed. Declining what the "
        "agent's own instructions forbid, or asking for what is really needed, is no fault: judge what was possible up "
        "to there. If a tool failed and the agent said so and did what was left to do, that is 3 or better. "
        "Cite the words of the request that was not met, or the reply that falls short of it."
    ),
)

_OPENERS = frozenset(
    {"answer", "final answer", "let me think", "output", "response", "result", "solution", "thought process"}
)


def _subjects(_: Case) -> Sequence[Subject]:
    return [Subject()]


async def _decide(case: Case, _: Subject, bench: Bench) -> Decision:
    silent = _silent_turn(case.transcript)
    if silent is not None:
        return _empty(case.transcript, silent)
    return await ask(QUESTION, case, bench)


def _silent_turn(transcript: Transcript) -> Turn | None:
    """Return the last answered turn when its reply says nothing at all.

    Not when calls follow the reply (it was an aside before them) or a hosted tool ran (its image or file is the
    answer), and not when the recording simply ends before a reply.
    """
    answered = [turn for turn in transcript.turns if turn.reply]
    if not answered:
        return None
    turn = answered[-1]
    calls = [transcript.calls[index] for index in turn.calls]
    if any(call.kind not in {"function", "custom", "mcp"} or call.event > turn.reply[-1] for call in calls):
        return None
    return None if _says_something(transcript.reply_text(turn)) else turn


def _says_something(text: str) -> bool:
    kinds = {unicodedata.category(character) for character in text}
    if not any(kind[0] in "LN" or kind == "So" for kind in kinds):
        return False
    return " ".join(text.split()).strip(" :.,;!?*#-_'\"").casefold() not in _OPENERS


def _empty(transcript: Transcript, turn: Turn) -> Decision:
    finding = report(
        QUESTION.faults,
        "empty_reply",
        "The last reply of the conversation holds no word, number or symbol that could answer the user.",
        [whole(transcript, turn.reply[-1])],
        event=turn.reply[-1],
        turn=turn.index,
    )
    return failed("The agent's last reply has no content.", [finding], label="1", score=1)


TASK_COMPLETION = Judge(
    name=QUESTION.dimension,
    family="output",
    version="1",
    question=QUESTION.text,
    level="conversation",
    method="hybrid",
    subjects=_subjects,
    decide=_decide,
    severities=QUESTION.severities,
    scale="1-5",
    threshold=3,
    labels=QUESTION.labels,
    reasons=REASONS,
)
