"""Puts the API together."""

import contextlib
import functools
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

from fastapi import FastAPI

from app.api.collaborators import Collaborators
from app.api.envelope import Envelope
from app.api.failures import add_handlers
from app.api.lingering import LingeringClose
from app.api.routes import about, contents, evaluations
from app.api.schema.document import document
from app.pipeline.access import Doorman

Opened: TypeAlias = Callable[[], AbstractAsyncContextManager[Collaborators]]

ROUTES = (*evaluations.router.routes, *contents.router.routes, *about.router.routes)
"""In the order in which they are tried: the status poll first."""


def create_api(opened: Opened) -> FastAPI:
    """Return the application. What ``opened`` yields is entered at start-up and left at shut-down."""

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with opened() as collaborators:
            app.state.collaborators = collaborators
            app.state.doorman = Doorman(collaborators.store)
            yield

    # The interactive pages are off: they load scripts from elsewhere.
    app = FastAPI(
        routes=list(ROUTES), lifespan=lifespan, openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False
    )
    app.state.openapi = functools.cache(lambda: document(ROUTES))
    add_handlers(app)
    app.add_middleware(Envelope)
    app.add_middleware(LingeringClose)
    return app
