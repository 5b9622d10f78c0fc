"""Entry point of an API process: ``uvicorn --factory app.main:create_app``."""

import contextlib
from collections.abc import AsyncIterator

from fastapi import FastAPI

from app.api.application import create_api
from app.api.collaborators import Collaborators
from app.judges.catalogue import JUDGES
from app.logs import set_up_logs
from app.settings import Settings, read_settings
from app.wiring import api_parts


def create_app() -> FastAPI:
    """Return the API on what the environment says.

    Raises:
        SettingsError: naming each variable that cannot be used.
    """
    settings = read_settings()
    set_up_logs(settings.log_level)
    return create_api(lambda: _collaborators(settings))


@contextlib.asynccontextmanager
async def _collaborators(settings: Settings) -> AsyncIterator[Collaborators]:
    async with api_parts(settings) as parts:
        yield Collaborators(store=parts.store, queue=parts.queue, intake=parts.intake, rules=parts.rules, judges=JUDGES)
