"""What an evaluation says, as tables for people.

Everything shown comes out of transcripts, which are hostile text: it is escaped, clipped and never read as markup.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from app.logs import escape_controls

SEVERITIES = ("critical", "high", "medium", "low", "info")
COLOURS = {"critical": "bold white on red", "high": "bold red", "medium": "yellow", "low": "cyan", "info": "dim"}
UNSCORED = {"completed": "nothing scored"}
HINTS = {"no_judge_model": "Set FORENSIC_JUDGE_MODEL where the service runs."}
"""What can be done about a reason, beyond what the judge itself says of it."""
LONGEST_QUOTE = 160
LONGEST_LINE = 300
MOST_NAMES = 10
MOST_PLACES = 3
PASS, FAIL, UNDECIDED = 0, 1, 3


def exit_code(evaluations: Iterable[Mapping[str, Any]]) -> int:
    """Return 1 when any failed, else 3 when any is anything but passed, else 0."""
    results = {evaluation["result"] for evaluation in evaluations}
    if "fail" in results:
        return FAIL
    return PASS if results <= {"pass"} else UNDECIDED


def plain(value: object, longest: int = LONGEST_LINE) -> str:
    """Return foreign text fit to be shown: clipped, and with nothing in it that steers a terminal."""
    text = escape_controls(str(value))
    return text if len(text) <= longest else text[: longest - 1] + "…"


def findings_table(findings: Sequence[Mapping[str, Any]], names: Mapping[int, str]) -> Table:
    """Return findings with their evidence, worst first, then by conversation; why one matters is told once a title."""
    table = Table(box=None, padding=(0, 1, 1, 0), show_edge=False, expand=True, header_style="bold")
    table.add_column("Conversation", ratio=4, overflow="fold")
    table.add_column("Severity", min_width=8, no_wrap=True)
    table.add_column("What was found, and where it stands", ratio=16, overflow="fold")
    ordered = sorted(findings, key=lambda each: (SEVERITIES.index(each["severity"]), each["conversation"]))
    told: set[str] = set()
    for finding in ordered:
        severity, title = finding["severity"], finding["title"]
        table.add_row(
            Text(_name(finding["conversation"], names)),
            Text(severity, COLOURS[severity]),
            _finding(finding, explain=title not in told),
        )
        told.add(title)
    return table


def _finding(finding: Mapping[str, Any], *, explain: bool) -> RenderableType:
    lines = [Text(plain(finding["title"]), "bold"), Text(f"{finding['dimension']}: {plain(finding['description'])}")]
    if explain:
        lines.append(Text(plain(finding["why_it_matters"]), "italic"))
    lines += [_evidence(each) for each in finding["evidence"][:MOST_PLACES]]
    if (more := len(finding["evidence"]) - MOST_PLACES) > 0:
        lines.append(Text(f"  … and {_count(more, 'more place')}", "dim"))
    return Group(*lines)


def _evidence(evidence: Mapping[str, Any]) -> Text:
    """The place as a path one can look up, and the words that stand there."""
    source, event, pointer = evidence["source"], evidence["event"], plain(evidence["pointer"]).removeprefix("/")
    place = f"{source if event is None else f'{source}[{event}]'} {pointer}".strip()
    span = "" if evidence["start"] is None else f", characters {evidence['start']}-{evidence['end']}"
    return Text.assemble((f"  {place}{span}: ", "dim"), (f"“{plain(evidence['quote'], LONGEST_QUOTE)}”", "green"))


def undecided_table(
    verdicts: Iterable[Mapping[str, Any]], judges: Iterable[Mapping[str, Any]], title: str = "Verdicts"
) -> Table | None:
    """Return what was not scored or went wrong, grouped and explained by reason; None when there is nothing.

    ``judges`` say what their reasons mean; where they do not, a verdict's own words do. ``title`` heads the counts, and
    says it when not all verdicts were looked at.
    """
    meanings = {(judge["name"], reason): text for judge in judges for reason, text in judge["reasons"].items()}
    why: dict[str, str] = {}
    counts: Counter[str] = Counter()
    dimensions: dict[str, dict[str, None]] = {}
    for verdict in verdicts:
        reason = str(verdict["reason_code"])
        counts[reason] += 1
        dimensions.setdefault(reason, {})[verdict["dimension"]] = None
        why.setdefault(reason, meanings.get((verdict["dimension"], reason)) or str(verdict["rationale"]))
    if not counts:
        return None
    table = Table(box=None, padding=(0, 1, 0, 0), show_edge=False, header_style="bold")
    table.add_column("Reason")
    table.add_column(title, justify="right")
    table.add_column("Dimensions, and why", overflow="fold")
    for reason, count in counts.most_common():
        meaning = " ".join(filter(None, (plain(why[reason]), HINTS.get(reason))))
        names = Text(plain(", ".join(dimensions[reason])))
        table.add_row(Text(plain(reason)), str(count), Group(names, Text(meaning, "italic")))
    return table


def summary(evaluation: Mapping[str, Any]) -> Text:
    """Return the totals: the result, what became of every question, and what was found."""
    progress, verdicts, findings = evaluation["progress"], evaluation["verdicts"], evaluation["findings"]
    result = evaluation["result"] or evaluation["result_reason"] or evaluation["status"]
    found = ", ".join(f"{findings[name]} {name}" for name in SEVERITIES if findings[name]) or "none"
    return Text.assemble(
        ("Result: ", "bold"),
        (plain(result), "bold green" if result == "pass" else "bold red"),
        f" ({evaluation['status']})   {_count(progress['total'], 'conversation')}\n",
        ("Verdicts: ", "bold"),
        f"{verdicts['passed']} passed, {verdicts['failed']} failed, {verdicts['not_applicable']} not applicable, "
        f"{verdicts['not_scored']} not scored, {verdicts['error']} error\n",
        ("Findings: ", "bold"),
        found,
    )


def dimensions_table(evaluation: Mapping[str, Any]) -> Table:
    """Return what became of each dimension's questions; a pass rate is over the scored ones alone."""
    table = Table(box=None, padding=(0, 1, 0, 0), show_edge=False, header_style="bold")
    table.add_column("Dimension", overflow="fold")
    for title in ("passed", "failed", "n/a", "not scored", "error", "pass rate"):
        table.add_column(title, justify="right")
    for dimension, counts in evaluation["by_dimension"].items():
        rate = counts["pass_rate"]
        numbers = [str(counts[key]) for key in ("passed", "failed", "not_applicable", "not_scored", "error")]
        table.add_row(Text(plain(dimension)), *numbers, "-" if rate is None else f"{rate:.0%}")
    return table


def conversations_line(conversations: Sequence[Mapping[str, Any]], names: Mapping[int, str]) -> Text:
    """Count the conversations' results, and name some of those that could not be examined in full."""
    counts = Counter(each["result"] or UNSCORED.get(each["status"], each["status"]) for each in conversations)
    text = Text.assemble(("Conversations: ", "bold"), ", ".join(f"{n} {result}" for result, n in counts.most_common()))
    unexamined = [_name(each["index"], names) for each in conversations if each["result"] in {"partial", "error"}]
    if unexamined:
        more = ", …" if len(unexamined) > MOST_NAMES else ""
        text.append("\nNot examined in full: ", "bold").append(", ".join(unexamined[:MOST_NAMES]) + more)
    return text


def clean_text(conversations: Sequence[Mapping[str, Any]], found: Iterable[int], names: Mapping[int, str]) -> Text:
    """Name the conversations with nothing found, and apart from them those of which nothing was scored."""
    faulty = set(found)
    clean = [each for each in conversations if each["index"] not in faulty]
    groups = {
        "Nothing found": [_name(each["index"], names) for each in clean if each["result"] is not None],
        "Nothing scored, so nothing known": [_name(each["index"], names) for each in clean if each["result"] is None],
    }
    lines = [
        Text.assemble(
            (f"{title}: ", "bold"), ", ".join(group[:MOST_NAMES]) + (", …" if len(group) > MOST_NAMES else "")
        )
        for title, group in groups.items()
        if group
    ]
    return Text("\n").join(lines)


def warnings_text(evaluation: Mapping[str, Any], names: Mapping[int, str]) -> Text | None:
    """Return what was accepted but ignored, redacted or replaced; None when nothing was."""
    warnings = evaluation["warnings"]
    if not warnings:
        return None
    text = Text("Warnings:", "bold")
    for warning in warnings[:MOST_NAMES]:
        index = warning["conversation"]
        where = "request" if index is None else _name(index, names)
        times = "" if warning["count"] == 1 else f" ({warning['count']} times)"
        text.append(f"\n  {where} {plain(warning['pointer'], 60)}: {plain(warning['message'])}{times}", "not bold")
    if (more := len(warnings) - MOST_NAMES) > 0:
        text.append(f"\n  … and {more} more", "not bold")
    return text


def _name(index: int, names: Mapping[int, str]) -> str:
    return plain(names.get(index) or f"[{index}]", 60)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
