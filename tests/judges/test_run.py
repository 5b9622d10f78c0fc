import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from app.findings.model import Decision, Subject, Usage, Verdict, not_scored, passed
from app.judges.budget import BudgetedModel, UnavailableModel
from app.judges.contract import (
    Answer,
    Bench,
    Case,
    Judge,
    JudgeModelError,
    Prompt,
    SchemaCheck,
)
from app.judges.run import IN_FLIGHT, RetryIn, run
from app.judges.voting import count
from app.transcripts.model import ToolCall, Transcript, Turn


class NoSchemas:
    async def check(self, jobs: Sequence[tuple[str, str]]) -> list[SchemaCheck]:
        return [SchemaCheck() for _ in jobs]


BENCH = Bench(NoSchemas())
CALL = ToolCall(0, None, "c1", "look_up", "function", 0)
WITHOUT_CALLS = Case(Transcript("messages", "messages", (), (), (), ()), "nonce")
WITH_CALLS = Case(Transcript("items", "items", (), (), (CALL,), ()), "nonce")


def judge(name: str, decide: Any, *, family: Any = "output", subjects: Sequence[Subject] = (Subject(),)) -> Judge:
    return Judge(name, family, "1", "?", "conversation", "llm", lambda _: subjects, decide, {})


async def fine(case: Case, subject: Subject, bench: Bench) -> Decision:
    return passed("fine")


async def collect(
    judges: Sequence[Judge], case: Case = WITH_CALLS, **rest: Any
) -> tuple[list[Verdict], RetryIn | None]:
    told: list[Verdict] = []

    async def emit(verdict: Verdict) -> None:
        told.append(verdict)

    return told, await run(judges, case, BENCH, emit, **rest)


async def test_tool_judges_say_nothing_about_a_conversation_without_calls() -> None:
    told, _ = await collect([judge("a", fine), judge("b", fine, family="tool")], WITHOUT_CALLS)
    assert [verdict.dimension for verdict in told] == ["a"]


async def test_one_failing_judge_does_not_fail_another() -> None:
    async def broken(case: Case, subject: Subject, bench: Bench) -> Decision:
        raise ZeroDivisionError

    told, retry = await collect([judge("broken", broken), judge("fine", fine)])
    states = {verdict.dimension: (verdict.decision.status, verdict.decision.reason_code) for verdict in told}
    assert states == {"broken": ("error", "internal_error"), "fine": ("scored", None)}
    assert retry is None


async def test_what_was_decided_before_is_not_decided_again() -> None:
    subjects = [Subject("call", event=event) for event in range(3)]
    told, _ = await collect([judge("a", fine, subjects=subjects)], done=frozenset({("a", "call:1", "1")}))
    assert [verdict.subject.event for verdict in told] == [0, 2]


async def test_the_last_turn_alone_can_be_asked_for() -> None:
    turns = tuple(Turn(index, (), (), (), ()) for index in range(3))
    case = replace(WITH_CALLS, transcript=replace(WITH_CALLS.transcript, turns=turns), scope="last_turn")
    subjects = [*(Subject("call", turn=turn, event=turn) for turn in range(3)), Subject()]
    told, _ = await collect([judge("a", fine, subjects=subjects)], case)
    assert {verdict.subject.key for verdict in told} == {"call:2", "conversation"}


async def test_another_version_is_decided_anew() -> None:
    told, _ = await collect([replace(judge("a", fine), version="2")], done=frozenset({("a", "conversation", "1")}))
    assert [verdict.judge_version for verdict in told] == ["2"]


async def test_trouble_with_the_model_is_an_error_and_never_a_number() -> None:
    async def slow(case: Case, subject: Subject, bench: Bench) -> Decision:
        raise JudgeModelError("timeout", "120 s", usage=Usage(3))

    told, _ = await collect([judge("a", slow)])
    decision = told[0].decision
    assert (decision.status, decision.reason_code, decision.passed, decision.score) == ("error", "timeout", None, None)
    assert decision.usage.requests == 3


async def test_a_long_pause_postpones_only_what_asked_for_it() -> None:
    async def limited(case: Case, subject: Subject, bench: Bench) -> Decision:
        raise JudgeModelError("rate_limited", "wait", retry_after_seconds=90, usage=Usage(2))

    told, retry = await collect([judge("limited", limited), judge("fine", fine)])
    assert ([verdict.dimension for verdict in told], retry) == (["fine"], RetryIn(90, Usage(2)))
    told, retry = await collect([judge("limited", limited)], may_wait=False)
    assert (told[0].decision.reason_code, retry) == ("rate_limited", None)


async def test_decisions_under_way_are_bounded() -> None:
    running = most = 0

    async def counted(case: Case, subject: Subject, bench: Bench) -> Decision:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return passed("fine")

    subjects = [Subject("call", event=event) for event in range(IN_FLIGHT * 4)]
    told, _ = await collect([judge("a", counted, subjects=subjects)])
    assert len({verdict.subject.key for verdict in told}) == IN_FLIGHT * 4
    assert 1 < most <= IN_FLIGHT


async def test_trouble_with_storing_ends_the_run() -> None:
    async def emit(verdict: Verdict) -> None:
        raise LookupError("lost")

    with pytest.raises(LookupError):
        await run([judge("a", fine)], WITH_CALLS, BENCH, emit)


def answer(label: str, passes: bool) -> Decision:
    if passes:
        return passed("because", label=label, method="llm", usage=Usage(1, 100, 0, 10))
    return not_scored("judge_abstained", "unsure", label=label, method="llm", usage=Usage(1, 100, 0, 10))


async def test_a_majority_decides_and_is_told() -> None:
    ballots = iter([answer("yes", True), answer("cannot_determine", False), answer("yes", True)])

    async def ask(case: Case, subject: Subject, bench: Bench) -> Decision:
        return next(ballots)

    told, _ = await collect([judge("a", ask)], votes=3)
    decision = told[0].decision
    assert (decision.label, decision.votes and (decision.votes.cast, decision.votes.agree)) == ("yes", (3, 2))
    assert decision.usage.requests == 3


def test_without_a_majority_nobody_decides() -> None:
    decision = count([answer("1", True), answer("2", True), answer("3", True)])
    assert (decision.status, decision.reason_code) == ("not_scored", "judges_disagree")
    assert decision.usage.prompt_tokens == 300


async def test_what_code_decided_is_not_put_to_the_vote() -> None:
    asked = 0

    async def code(case: Case, subject: Subject, bench: Bench) -> Decision:
        nonlocal asked
        asked += 1
        return passed("a fact")

    told, _ = await collect([judge("a", code)], votes=5)
    assert (asked, told[0].decision.votes) == (1, None)


class Model:
    async def ask(self, prompt: Prompt) -> Answer:
        return Answer({}, "m", "0", Usage(1, 80, 0, 20, 0.02))


@pytest.mark.parametrize(
    ("limits", "answers"),
    [({"max_tokens": 250, "max_cost_usd": None}, 3), ({"max_tokens": None, "max_cost_usd": 0.02}, 1)],
)
async def test_a_spent_budget_leaves_the_rest_unscored(limits: dict[str, Any], answers: int) -> None:
    model = BudgetedModel(Model(), **limits)
    prompt = Prompt("a", "", "", "", {})

    async def ask(case: Case, subject: Subject, bench: Bench) -> Decision:
        return passed("fine", usage=(await model.ask(prompt)).usage)

    told = [(await collect([judge("a", ask)]))[0][0].decision for _ in range(5)]
    assert [decision.status for decision in told] == ["scored"] * answers + ["not_scored"] * (5 - answers)
    assert told[-1].reason_code == "budget_exhausted"


async def test_a_limit_of_money_needs_a_price() -> None:
    class Unpriced(Model):
        async def ask(self, prompt: Prompt) -> Answer:
            return Answer({}, "m", "0", Usage(1, 80, 0, 20, None))

    model = BudgetedModel(Unpriced(), max_tokens=None, max_cost_usd=5.0)
    prompt = Prompt("a", "", "", "", {})
    await model.ask(prompt)
    with pytest.raises(JudgeModelError) as refused:
        await model.ask(prompt)
    assert refused.value.reason_code == "price_unknown"


async def test_what_others_spent_counts() -> None:
    model = BudgetedModel(Model(), max_tokens=500, max_cost_usd=None)
    model.at_least(500, 0.0)
    with pytest.raises(JudgeModelError) as refused:
        await model.ask(Prompt("a", "", "", "", {}))
    assert refused.value.reason_code == "budget_exhausted"


async def test_a_model_that_is_gone_is_no_error() -> None:
    async def ask(case: Case, subject: Subject, bench: Bench) -> Decision:
        await UnavailableModel("old").ask(Prompt("a", "", "", "", {}))
        raise AssertionError("unreachable")

    told, _ = await collect([judge("a", ask)])
    assert (told[0].decision.status, told[0].decision.reason_code) == ("not_scored", "model_unavailable")
