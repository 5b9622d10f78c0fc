"""Several answers to one question: a strict majority decides, or nobody does.

Only a model's answer is put to the vote; what code decided is a fact. Voting does not cure a systematic error, it
shows how stable an answer is, so the agreement is stored beside the label.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from app.findings.model import Decision, Subject, Usage, Votes, not_scored
from app.judges.contract import Bench, Case, Judge, JudgeModelError


async def decide(judge: Judge, case: Case, subject: Subject, bench: Bench, votes: int) -> Decision:
    """Return the judge's decision, by strict majority of ``votes`` (odd) answers where a model gives it.

    Raises:
        JudgeModelError: from the first answer that could not be had.
    """
    first = await judge.decide(case, subject, bench)
    if votes == 1 or not _voted(first):
        return first
    ballots = [first]
    while len(ballots) < votes:
        try:
            ballots.append(await judge.decide(case, subject, bench))
        except JudgeModelError as error:
            error.usage = sum((ballot.usage for ballot in ballots), error.usage)
            raise
    return count(ballots)


def _voted(decision: Decision) -> bool:
    return decision.method != "deterministic" and decision.usage.requests > 0


def count(ballots: Sequence[Decision]) -> Decision:
    """Return the majority's first decision with the votes and the usage of all, or that the judges disagree."""
    usage = sum((ballot.usage for ballot in ballots), Usage())
    choices = [(ballot.status, ballot.passed, ballot.label) for ballot in ballots]
    winner, agree = Counter(choices).most_common(1)[0]
    votes = Votes(len(ballots), agree)
    attempts = sum(ballot.attempts for ballot in ballots)
    chosen = ballots[choices.index(winner)]
    if agree * 2 > len(ballots):
        return replace(chosen, votes=votes, usage=usage, attempts=attempts)
    labels = ", ".join(str(label or status) for status, _, label in choices)
    return not_scored(
        "judges_disagree",
        f"{len(ballots)} answers had no majority: {labels}.",
        method=chosen.method,
        model=chosen.model,
        prompt_sha256=chosen.prompt_sha256,
        coverage=chosen.coverage,
        votes=votes,
        usage=usage,
        attempts=attempts,
    )
