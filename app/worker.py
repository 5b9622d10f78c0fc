"""Entry point of a worker process: ``python -m app.worker``. SIGTERM and SIGINT give work back and end it."""

import asyncio
import signal
import sys

from app import wiring
from app.logs import set_up_logs
from app.pipeline.errors import StoreUnavailableError
from app.settings import SettingsError, read_settings


async def work() -> None:
    """Judge conversations until told to stop."""
    settings = read_settings()
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
    """Run a worker; 2 when its settings cannot be used, 1 when the database cannot at the start."""
    try:
        asyncio.run(work())
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except StoreUnavailableError as error:
        sys.stderr.write(f"the database cannot be used (was `forensic migrate` run?): {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
