"""``forensic submit``: sends files of conversations to a service, waits, and tells what was found."""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from app.cli import report
from app.cli.bodies import Submission, submissions
from app.cli.client import PATH, Client
from app.cli.failure import CommandError
from app.cli.progress import follow
from app.logs import escape_controls

MOST_FINDINGS = 20
SAMPLE = 100
STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True)
class How:
    """How to go about it."""

    url: str
    api_key: str
    wait: bool
    as_json: bool


async def submit(files: Sequence[str], how: How) -> int:
    """Submit, and return the exit code.

    Raises:
        CommandError: a file cannot be read, or the service refuses or cannot be reached.
    """
    bodies = submissions([(name, _read(name)) for name in files])
    # What a program reads goes to standard output alone.
    told, progress = Console(), Console(stderr=True)
    ended: list[dict[str, Any]] = []
    async with Client(how.url, how.api_key) as client:
        accepted = [await client.submit(each) for each in bodies]
        for body, evaluation in zip(bodies, accepted, strict=True):
            state = evaluation
            if how.wait:
                progress.print(f"{evaluation['id']}: accepted", highlight=False, soft_wrap=True)
                state = await _awaited(client, evaluation["id"], how, progress)
                ended.append(state)
            if how.as_json:
                typer.echo(json.dumps(state))
            elif how.wait:
                await _tell(client, state, body, told)
            else:
                typer.echo(f"{evaluation['id']}  {how.url}{PATH}/{evaluation['id']}")
    return report.exit_code(ended)


async def _awaited(client: Client, evaluation_id: str, how: How, progress: Console) -> dict[str, Any]:
    """Wait for an evaluation to end; whoever does not want to is told how to look at it later."""
    try:
        return await follow(client, evaluation_id, progress)
    except asyncio.CancelledError:
        look = f'curl -sS {how.url}{PATH}/{evaluation_id} -H "Authorization: Bearer $FORENSIC_API_KEY"'
        progress.print(
            f"The service goes on without this command. To look:\n  {look}",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )
        raise


def _read(name: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if name == STANDARD_INPUT else Path(name).read_bytes()
    except OSError as error:
        raise CommandError(f"{escape_controls(name)}: {error.strerror}") from None


async def _tell(client: Client, evaluation: Mapping[str, Any], body: Submission, console: Console) -> None:
    path = f"{PATH}/{evaluation['id']}"
    conversations = [each async for each in client.every(f"{path}/conversations")]
    names = {each["index"]: _name(each, body.places) for each in conversations}
    findings = await _worst(client, path)
    console.print(f"\n{evaluation['id']}", highlight=False, soft_wrap=True)
    console.print(report.summary(evaluation))
    console.print(report.conversations_line(conversations, names))
    if (warnings := report.warnings_text(evaluation, names)) is not None:
        console.print(warnings)
    console.print()
    console.print(report.dimensions_table(evaluation))
    await _tell_undecided(client, path, console)
    if findings:
        console.print()
        console.print(report.findings_table(findings, names))
        rest = sum(evaluation["findings"].values()) - len(findings)
        if rest > 0:
            console.print(f"… and {rest} more: GET {path}/findings", highlight=False, soft_wrap=True)


async def _tell_undecided(client: Client, path: str, console: Console) -> None:
    """Say why verdicts are missing, by a sample of them: there may be a great many."""
    parts = [await client.get(f"{path}/verdicts", status=each, limit=str(SAMPLE)) for each in ("not_scored", "error")]
    title = f"of the first {SAMPLE}" if any(part["has_more"] for part in parts) else "Verdicts"
    verdicts = [verdict for part in parts for verdict in part["data"]]
    judges = (await client.get("/v1/judges"))["data"] if verdicts else []
    table = report.undecided_table(verdicts, judges, title)
    if table is not None:
        console.print("\nNot scored or in error, and why:", style="bold")
        console.print(table)


async def _worst(client: Client, path: str) -> list[dict[str, Any]]:
    """Return the worst findings, however many there are in all."""
    worst: list[dict[str, Any]] = []
    for severity in report.SEVERITIES:
        if len(worst) < MOST_FINDINGS:
            part = await client.get(f"{path}/findings", severity=severity, limit=str(MOST_FINDINGS - len(worst)))
            worst += part["data"]
    return worst


def _name(conversation: Mapping[str, Any], places: Sequence[str]) -> str:
    """The client's own id, else where it stands; the folder would take the room of the name."""
    index = conversation["index"]
    place = places[index].rpartition("/")[2] if index < len(places) else f"[{index}]"
    return str(conversation["client_id"] or place)
