"""Shows how far an evaluation is: a bar on a terminal, a line a change elsewhere."""

from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from app.cli.client import Client


async def follow(client: Client, evaluation_id: str, console: Console) -> dict[str, Any]:
    """Wait for an evaluation to end, showing progress on ``console``, and return it."""
    if console.is_terminal:
        return await _with_bar(client, evaluation_id, console)
    shown = -1
    state: dict[str, Any] = {}
    async for state in client.states(evaluation_id):
        if (ended := _ended(state)) != shown:
            console.print(f"examined {ended} of {state['progress']['total']}", highlight=False)
            shown = ended
    return state


async def _with_bar(client: Client, evaluation_id: str, console: Console) -> dict[str, Any]:
    columns = (TextColumn("examining"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    state: dict[str, Any] = {}
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None)
        async for state in client.states(evaluation_id):
            progress.update(task, completed=_ended(state), total=state["progress"]["total"])
    return state


def _ended(state: dict[str, Any]) -> int:
    progress = state["progress"]
    return int(progress["completed"] + progress["failed"] + progress["canceled"])
