"""Entry point of a worker process: ``python -m app.worker``. SIGTERM and SIGINT give work back and end it."""

import asyncio
import signal
import sys

from app import wiring
from app.logs import set_up_logs
from app.pipeline.errors import StoreUnavailableError
from app.settings import Settings, SettingsError, read_settings


async def work(settings: Settings) -> None:
    """Judge conversations until told to stop."""
    set_up_logs(settings.log_level)
    running = asyncio.ensure_future(wiring.run_worker(settings))
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, running.cancel)
    try:
        await running
    except asyncio.CancelledError:
        return


def main() -> int:
    """Run a worker; 2 when its settings or the database they name cannot be used."""
    try:
        settings = read_settings()
        try:
            asyncio.run(work(settings))
        except StoreUnavailableError as error:
            raise SettingsError([settings.database_problem(str(error))]) from None
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
