"""The ``forensic`` command line: what can be asked for, and how failures are told.

Commands that run the service import it when they are called: that takes a second, and ``submit`` does without.
"""

import asyncio
import io
import os
import sys
from importlib.metadata import version
from typing import Annotated

import typer
from rich.console import Console

from app.cli.failure import CommandError
from app.cli.submit import How
from app.cli.submit import submit as submit_files
from app.logs import escape_controls, set_up_logs
from app.pipeline.errors import StoreUnavailableError
from app.settings import Settings, SettingsError, export_settings, read_settings, unknown_variables

USAGE = 2
INTERRUPTED = 130
OUTCOMES = "Exits 0: pass, 1: fail, 2: usage, HTTP or service error, 3: partial, error, canceled or nothing scored."

cli = typer.Typer(
    name="forensic",
    help="Examines recorded conversations of LLM agents after the fact.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line and end the process with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what a terminal's encoding lacks is spelled out
            stream.reconfigure(errors="backslashreplace")
    try:
        cli()
    except StoreUnavailableError as error:
        sys.stderr.write(read_settings().database_problem(str(error)) + "\n")
        sys.exit(USAGE)
    except (CommandError, SettingsError) as error:
        lines = error.problems if isinstance(error, SettingsError) else error.lines
        sys.stderr.write("".join(f"{line}\n" for line in lines))
        sys.exit(USAGE)


def _settings() -> Settings:
    """Read the settings, and warn of variables that are none."""
    for line in unknown_variables():
        typer.echo(escape_controls(line), err=True)
    return read_settings()


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"forensic {version('forensic-evals')}")
        raise typer.Exit


@cli.callback()
def _options(
    _: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Settings are read from FORENSIC_* variables; README.md lists them."""


@cli.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on, instead of FORENSIC_HOST.")] = None,
    port: Annotated[int | None, typer.Option(help="Port, instead of FORENSIC_PORT; 0 takes a free one.")] = None,
    with_worker: Annotated[bool, typer.Option(help="Run a worker too when FORENSIC_REDIS_URL is set.")] = False,
) -> None:
    """Run the service until Ctrl-C; without FORENSIC_REDIS_URL, a private Redis and a worker too."""
    from app.cli.serve import serve as run_service  # noqa: PLC0415  # see above

    given = {"host": host, "port": None if port is None else str(port)}
    export_settings({name: value for name, value in given.items() if value is not None})
    settings = _settings()
    run_service(settings, with_worker=with_worker or settings.redis_url is None)


@cli.command()
def worker() -> None:
    """Judge conversations until Ctrl-C; needs FORENSIC_REDIS_URL."""
    settings = _settings()
    if settings.redis_url is None:
        raise CommandError("A worker of its own needs FORENSIC_REDIS_URL; without it `forensic serve` judges.")
    os.execv(sys.executable, [sys.executable, "-m", "app.worker"])  # noqa: S606  # no shell is wanted


@cli.command()
def migrate() -> None:
    """Bring the database's schema up to date."""
    from app import wiring  # noqa: PLC0415  # see above

    settings = _settings()
    set_up_logs(settings.log_level)
    asyncio.run(wiring.migrate(settings))
    typer.echo("The schema is up to date.")


@cli.command()
def demo() -> None:
    """Examine a bundled set of conversations on a service of its own; leaves nothing behind."""
    from app.cli.demo import demo as show_demo  # noqa: PLC0415  # see above

    show_demo(Console())


@cli.command(epilog=OUTCOMES)
def submit(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="JSON, YAML or JSONL; - is standard input.", show_default=False),
    ],
    url: Annotated[str, typer.Option(envvar="FORENSIC_URL", help="Where the service is.")] = "http://127.0.0.1:8000",
    api_key: Annotated[str, typer.Option(envvar="FORENSIC_API_KEY", help="Key of the service.")] = "",
    wait: Annotated[bool, typer.Option(help="Wait for the evaluation to end.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the evaluation object and nothing else.")] = False,
) -> None:
    """Submit recorded conversations, wait, and show what was found.

    A file holds a whole request, a list of conversations, one conversation, or one a line. Conversations from several
    files become one evaluation; a whole request is an evaluation of its own.
    """
    if not api_key:
        raise CommandError("An API key is needed: set FORENSIC_API_KEY or give --api-key (`forensic serve` shows one).")
    try:
        code = asyncio.run(submit_files(files, How(url.rstrip("/"), api_key, wait, as_json)))
    except KeyboardInterrupt:
        code = INTERRUPTED
    raise typer.Exit(code)
