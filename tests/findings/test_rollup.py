from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.findings.model import (
    SEVERITIES,
    Decision,
    Evidence,
    Finding,
    Subject,
    Usage,
    Verdict,
    errored,
    failed,
    not_applicable,
    not_scored,
    passed,
)
from app.findings.rollup import Tally, roll_up
from tests.tallies import tally_of

QUOTE = Evidence("items", 0, "/content", 0, 2, "hi")


def finding(severity: Any) -> Finding:
    return Finding("code", severity, "Title", "Description.", "Because.", (QUOTE,))


def verdict(decision: Decision, dimension: str = "tool_selection", family: Any = "tool") -> Verdict:
    return Verdict(dimension, family, "1", Subject(), "binary", None, decision)


PASSED = passed("fine")
NOT_APPLICABLE = not_applicable("no_arguments", "none")
NOT_SCORED = not_scored("no_judge_model", "none")
ERROR = errored("timeout", "too slow")
REMARK = passed("fine", findings=(finding("info"),))
LOW, MEDIUM, CRITICAL = (failed("bad", [finding(severity)]) for severity in ("low", "medium", "critical"))

decisions = st.sampled_from([PASSED, REMARK, NOT_APPLICABLE, NOT_SCORED, ERROR, LOW, MEDIUM, CRITICAL])
verdicts = st.lists(st.builds(verdict, decisions, st.sampled_from(["tool_selection", "groundedness"])), max_size=12)


@pytest.mark.parametrize(
    ("given_decisions", "result", "reason"),
    [
        ([PASSED], "pass", None),
        ([PASSED, REMARK, NOT_SCORED, NOT_APPLICABLE], "pass", None),
        ([PASSED, LOW], "pass", None),
        ([PASSED, MEDIUM], "fail", None),
        ([ERROR, CRITICAL], "fail", None),
        ([PASSED, ERROR], "partial", None),
        ([LOW, ERROR], "partial", None),
        ([ERROR, NOT_SCORED], "error", None),
        ([NOT_SCORED, NOT_APPLICABLE], None, "nothing_scored"),
        ([], None, "nothing_scored"),
    ],
)
def test_result(given_decisions: list[Decision], result: str | None, reason: str | None) -> None:
    assert roll_up(tally_of([verdict(decision) for decision in given_decisions])) == (result, reason)


def test_failed_expectation_fails_whatever_its_severity() -> None:
    assert roll_up(tally_of([verdict(LOW, "expectation.exact_match", "expectation")])) == ("fail", None)


@given(verdicts, verdicts)
def test_tallies_add_up(some: list[Verdict], others: list[Verdict]) -> None:
    assert tally_of(some) + tally_of(others) == tally_of([*some, *others])
    assert tally_of(some) + Tally() == tally_of(some)


@given(verdicts)
def test_counters_agree_with_each_other(some: list[Verdict]) -> None:
    tally = tally_of(some)
    counts = tally.verdicts
    assert len(some) == counts.scored + counts.not_applicable + counts.not_scored + counts.error
    assert counts.scored == sum(each.scored for each in tally.by_dimension.values())
    assert set(tally.findings) == set(SEVERITIES)
    for each in tally.by_dimension.values():
        assert (each.pass_rate is None) == (each.scored == 0)


@given(verdicts)
def test_an_error_never_turns_a_result_green(some: list[Verdict]) -> None:
    before, _ = roll_up(tally_of(some))
    after, _ = roll_up(tally_of([*some, verdict(ERROR)]))
    assert after == "fail" if before == "fail" else after in {"partial", "error"}


@pytest.mark.parametrize(
    "make",
    [
        lambda: failed("bad", []),
        lambda: failed("bad", [finding("info")]),
        lambda: passed("fine", findings=(finding("low"),)),
        lambda: not_scored("no_judge_model", "none", findings=(finding("high"),)),
        lambda: Decision("scored", reason_code="odd", passed=True),
        lambda: Decision("error"),
        lambda: Finding("code", "low", "t", "d", "w", ()),
    ],
)
def test_a_contradictory_answer_cannot_be_made(make: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        make()


def test_cost_is_unknown_when_a_part_of_it_is() -> None:
    known = Usage(1, 10, 0, 5, 0.5)
    assert (known + Usage()).cost_usd == pytest.approx(0.5)
    assert (known + known).cost_usd == pytest.approx(1.0)
    assert (known + Usage(1, 10, 0, 5, None)).cost_usd is None
    assert (Usage() + Usage()).cost_usd is None
