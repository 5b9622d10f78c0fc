"""Shows how far an evaluation is: a bar on a terminal, a line a change elsewhere."""

import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from app.cli.client import Client

PATIENCE_SECONDS = 10.0
NO_WORKER = "Nothing has begun after {:.0f} s: perhaps no worker is running (`forensic worker` starts one)."


async def follow(client: Client, evaluation_id: str, console: Console) -> dict[str, Any]:
    """Wait for an evaluation to end, showing progress on ``console``, and return it."""
    if console.is_terminal:
        return await _with_bar(client, evaluation_id, console)
    shown = -1
    state: dict[str, Any] = {}
    doubt = _Doubt(console)
    async for state in client.states(evaluation_id):
        doubt.consider(state)
        if (ended := _ended(state)) != shown:
            console.print(f"examined {ended} of {state['progress']['total']}", highlight=False)
            shown = ended
    return state


async def _with_bar(client: Client, evaluation_id: str, console: Console) -> dict[str, Any]:
    columns = (TextColumn("examining"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    state: dict[str, Any] = {}
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None)
        doubt = _Doubt(progress.console)
        async for state in client.states(evaluation_id):
            doubt.consider(state)
            progress.update(task, completed=_ended(state), total=state["progress"]["total"])
    return state


class _Doubt:
    """Says once that nothing has begun for long: an evaluation without a worker waits for ever."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._since = time.monotonic()
        self._told = False

    def consider(self, state: dict[str, Any]) -> None:
        waited = time.monotonic() - self._since
        if state["status"] == "queued" and not self._told and waited > PATIENCE_SECONDS:
            self._told = True
            self._console.print(NO_WORKER.format(waited), highlight=False, soft_wrap=True)


def _ended(state: dict[str, Any]) -> int:
    progress = state["progress"]
    return int(progress["completed"] + progress["failed"] + progress["canceled"])
