"""``forensic serve``: the service on this machine until Ctrl-C, and a screenful that tells how to use it."""

import asyncio
import os
import shlex
import signal
from importlib.metadata import version

import typer
import uvicorn

from app.cli.failure import CommandError
from app.cli.stack import Running, running
from app.logs import escape_controls, set_up_logs
from app.settings import Settings

INTERRUPTED = 130
EXAMPLE = (
    '{"conversations": [{"messages": [{"role": "user", "content": "What is 2 + 2?"}, '
    '{"role": "assistant", "content": "4."}]}]}'
)


def serve(settings: Settings, *, with_worker: bool) -> None:
    """Run until SIGINT, SIGTERM or SIGHUP. A second one ends everything at once.

    Raises:
        CommandError: it cannot start.
    """
    set_up_logs(settings.log_level)
    loop_factory = uvicorn.Config("app.main:create_app", log_config=None).get_loop_factory()
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(_serve(settings, with_worker=with_worker))


async def _serve(settings: Settings, *, with_worker: bool) -> None:
    stop = asyncio.Event()

    def interrupt() -> None:
        if stop.is_set():
            os._exit(INTERRUPTED)  # the children are tied to this process
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, interrupt)
    async with running(settings, with_worker=with_worker) as service:
        typer.echo(introduction(service))
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait({stopped, service.ended}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not stop.is_set():
            raise CommandError("the server ended by itself; its log says why")


def introduction(service: Running) -> str:
    """Return what someone who just started the service wants to know."""
    settings = service.settings
    if settings.bootstrap_api_key is None:
        key, key_shown = settings.api_key(), f"{settings.api_key()} (kept in {settings.data_dir / 'api-key'})"
    else:
        key, key_shown = "$FORENSIC_BOOTSTRAP_API_KEY", "the one in FORENSIC_BOOTSTRAP_API_KEY"
    database = (
        f"SQLite, in {settings.data_dir.absolute()}"
        if settings.database_url is None
        else "the database of FORENSIC_DATABASE_URL"
    )
    problem = settings.judge_problem
    judges = (
        f"model judges ask {', '.join(settings.models)} at {escape_controls(settings.judge_base_url or 'OpenAI')}"
        if problem is None
        else f"no judge model configured: model judges answer not_scored ({problem})"
    )
    return "\n".join(
        [
            f"Forensic Evals {version('forensic-evals')} listens on {service.url}",
            f"  API key  {key_shown}",
            f"  data     {database}",
            f"  queue    {service.queue}",
            f"  judges   {judges}",
            f"  OpenAPI  {service.url}/openapi.json",
            "",
            "Try it:",
            f'  curl -sS {service.url}/v1/forensic-evaluations -H "Authorization: Bearer {key}" \\',
            f"    -H 'Content-Type: application/json' -d {shlex.quote(EXAMPLE)}",
            "",
        ]
    )
