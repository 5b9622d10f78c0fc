"""The definition of a tally, verdict by verdict; the database counts by SQL and must come to the same."""

from collections.abc import Iterable

from app.findings.model import SEVERITIES, Verdict
from app.findings.rollup import Counts, Tally, count_key


def tally_of(verdicts: Iterable[Verdict]) -> Tally:
    """Return the tally of some verdicts."""
    total = Tally()
    for verdict in verdicts:
        decision = verdict.decision
        one = Counts(**{count_key(decision.status, decision.passed): 1})
        found = dict.fromkeys(SEVERITIES, 0)
        for finding in decision.findings:
            found[finding.severity] += 1
        failed_expectation = verdict.family == "expectation" and decision.passed is False
        total += Tally(one, {verdict.dimension: one}, found, int(failed_expectation), decision.usage)
    return total
