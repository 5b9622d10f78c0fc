"""``forensic demo``: the whole service examines a bundled set of conversations, over HTTP, and leaves nothing behind.

It is the same on every machine: no setting of the environment has a say, no model is asked, nothing costs anything.
"""

import asyncio
import contextlib
import secrets
import signal
import tempfile
import time
from importlib.resources import files
from pathlib import Path
from typing import IO

import uvicorn
from rich.console import Console

from app.cli import report
from app.cli.bodies import submissions
from app.cli.client import PATH, Client
from app.cli.failure import CommandError
from app.cli.progress import follow
from app.cli.stack import running
from app.logs import set_up_logs
from app.settings import export_settings, read_settings

NEXT_STEPS = """\
What you can do now:
  make serve                      run the service here; prints a key and a curl
  .venv/bin/forensic submit FILE  examine conversations of your own
  FORENSIC_JUDGE_MODEL=NAME FORENSIC_JUDGE_BASE_URL=URL make serve
                                  let a model judge what code cannot decide
README.md tells the rest."""

BEYOND_CODE = """\
Planted too, but beyond what code can tell, so left to a judge model:
garden-shop's agent obeys an order that stands in a tool's result, and ferry's
agent tells a failure as a fact."""


def demo(console: Console) -> None:
    """Run the demo and print what it shows on ``console``.

    Raises:
        CommandError: the service does not work here; its log is in the message.
    """
    loop_factory = uvicorn.Config("app.main:create_app", log_config=None).get_loop_factory()
    with tempfile.TemporaryDirectory(prefix="forensic-demo-", ignore_cleanup_errors=True) as folder:
        log_path = Path(folder) / "log"
        with log_path.open("w", encoding="utf-8") as log_file, asyncio.Runner(loop_factory=loop_factory) as runner:
            try:
                with contextlib.redirect_stderr(log_file):
                    set_up_logs("info")
                    runner.run(_demo(console, Path(folder), log_file))
            except CommandError as error:
                raise CommandError(*error.lines, *_last_lines(log_path)) from None
            except asyncio.CancelledError:
                raise CommandError("Stopped.") from None


async def _demo(console: Console, folder: Path, log_file: IO[str]) -> None:
    started = time.monotonic()
    this = asyncio.current_task()
    for number in (signal.SIGTERM, signal.SIGHUP):  # SIGINT is seen to by the runner
        asyncio.get_running_loop().add_signal_handler(number, lambda: this and this.cancel())
    key = f"fk_{secrets.token_urlsafe(24)}"
    export_settings({"data_dir": str(folder), "port": "0", "bootstrap_api_key": key}, alone=True)
    console.print("Starting the service …")
    async with running(read_settings(), with_worker=True, log_file=log_file) as service:
        console.print(
            f"It listens on {service.url}.\nWork reaches the judges by {service.queue}.",
            highlight=False,
            soft_wrap=True,
        )
        async with Client(service.url, key) as client:
            await _examine(console, client)
    console.print(f"\nDone in {time.monotonic() - started:.1f} s. Nothing is left running, and no file is left.\n")
    console.print(NEXT_STEPS, highlight=False, markup=False)


async def _examine(console: Console, client: Client) -> None:
    (submission,) = submissions(bundled())
    console.print(
        f"Submitting {len(submission.places)} recorded conversations; eight have something planted in them …",
        highlight=False,
    )
    accepted = await client.submit(submission)
    path = f"{PATH}/{accepted['id']}"
    evaluation = await follow(client, accepted["id"], console)
    conversations = [each async for each in client.every(f"{path}/conversations")]
    names = {each["index"]: str(each["client_id"]) for each in conversations}
    findings = [each async for each in client.every(f"{path}/findings")]
    undecided = [each async for each in client.every(f"{path}/verdicts", status="not_scored")]
    undecided += [each async for each in client.every(f"{path}/verdicts", status="error")]
    console.print()
    console.print(report.findings_table(findings, names))
    console.print(report.clean_text(conversations, (each["conversation"] for each in findings), names))
    console.print(f"\n{BEYOND_CODE}\n", highlight=False)
    table = report.undecided_table(undecided, (await client.get("/v1/judges"))["data"])
    if table is not None:
        console.print("Not scored or in error, and why (neither passed nor failed):", style="bold")
        console.print(table)
    console.print()
    console.print(report.summary(evaluation))


def bundled() -> list[tuple[str, bytes]]:
    """Return the conversations that come with the program, by file name."""
    folder = files("app.demo") / "data"
    return sorted((each.name, each.read_bytes()) for each in folder.iterdir() if each.name.endswith(".json"))


def _last_lines(path: Path) -> list[str]:
    lines = path.read_text("utf-8", errors="replace").splitlines()[-15:]
    return ["The last lines of its log:", *lines] if lines else []
