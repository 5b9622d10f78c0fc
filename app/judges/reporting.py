"""Findings that code makes: what a code means and weighs stands in the judge's table, the rest is the case."""

from collections.abc import Mapping, Sequence

from app.findings.model import Evidence, Finding, Severity
from app.judges.question import Fault

_LONGEST_SHOWN = 120


def report(
    faults: Mapping[str, Fault],
    code: str,
    description: str,
    evidence: Sequence[Evidence | None],
    *,
    event: int,
    turn: int,
) -> Finding:
    """Return a finding with the weight and words of its code; evidence that could not be cited is left out."""
    fault = faults[code]
    cited = tuple(place for place in evidence if place is not None)
    return Finding(code, fault.severity, fault.title, description, fault.why_it_matters, cited, event, turn)


def severities(faults: Mapping[str, Fault]) -> dict[str, Severity]:
    """Return every code with its severity, as a judge declares them."""
    return {code: fault.severity for code, fault in faults.items()}


def count(number: int, noun: str) -> str:
    """Return ``1 call``, ``3 calls``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def shown(text: str | None, instead: str = "the tool") -> str:
    """Return foreign words fit for a sentence of ours: short, control characters escaped."""
    if not text:
        return instead
    visible = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text[: _LONGEST_SHOWN + 1]
    )
    return visible if len(visible) <= _LONGEST_SHOWN else f"{visible[: _LONGEST_SHOWN - 1]}…"
