"""How verdicts roll up into a result, the same rule for a conversation and for an evaluation.

Tallies add up, so a conversation's tally is added to its evaluation's when it finishes and a status poll never counts
rows. Scales are never averaged together; the only rate is passed / (passed + failed) within one dimension.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

from app.findings.model import SEVERITIES, Severity, Usage

Result: TypeAlias = Literal["pass", "fail", "partial", "error"]
CountKey: TypeAlias = Literal["passed", "failed", "not_applicable", "not_scored", "error"]
COUNT_KEYS: tuple[CountKey, ...] = ("passed", "failed", "not_applicable", "not_scored", "error")
_NONE: Mapping[str, "Counts"] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Counts:
    """Verdicts by what became of them."""

    passed: int = 0
    failed: int = 0
    not_applicable: int = 0
    not_scored: int = 0
    error: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*(getattr(self, key) + getattr(other, key) for key in COUNT_KEYS))

    @property
    def scored(self) -> int:
        """How many verdicts enter the pass rate."""
        return self.passed + self.failed

    @property
    def pass_rate(self) -> float | None:
        """Return passed / scored, None when nothing was scored."""
        return self.passed / self.scored if self.scored else None


@dataclass(frozen=True, slots=True)
class Tally:
    """Everything that a result and a progress report are made of."""

    verdicts: Counts = Counts()
    by_dimension: Mapping[str, Counts] = field(default_factory=lambda: _NONE)
    findings: Mapping[Severity, int] = field(default_factory=lambda: MappingProxyType(dict.fromkeys(SEVERITIES, 0)))
    failed_expectations: int = 0
    usage: Usage = Usage()

    def __add__(self, other: "Tally") -> "Tally":
        dimensions = sorted({*self.by_dimension, *other.by_dimension})
        return Tally(
            self.verdicts + other.verdicts,
            {
                name: self.by_dimension.get(name, Counts()) + other.by_dimension.get(name, Counts())
                for name in dimensions
            },
            {severity: self.findings.get(severity, 0) + other.findings.get(severity, 0) for severity in SEVERITIES},
            self.failed_expectations + other.failed_expectations,
            self.usage + other.usage,
        )


def count_key(status: str, passed: bool | None) -> CountKey:
    """Return which of the five counters a verdict goes into."""
    if status == "scored":
        return "passed" if passed else "failed"
    return next(key for key in COUNT_KEYS if key == status)


def roll_up(tally: Tally) -> tuple[Result | None, str | None]:
    """Return result and, when there is none, its reason.

    In this order: a finding of medium or more, or a failed expectation, is ``fail`` (an errored judge never hides a
    failure); nothing scored but errors is ``error``; nothing scored is None; any error is ``partial``; else ``pass``.
    """
    if tally.failed_expectations or any(tally.findings[severity] for severity in ("medium", "high", "critical")):
        return "fail", None
    if not tally.verdicts.scored:
        return ("error", None) if tally.verdicts.error else (None, "nothing_scored")
    return ("partial", None) if tally.verdicts.error else ("pass", None)
