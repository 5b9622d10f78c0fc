"""Who asks, and whether they may: bearer keys, checked before anything else of a request is looked at."""

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from app.api.collaborators import Collaborators
from app.api.problems import ProblemError
from app.pipeline.access import Doorman

Scope: TypeAlias = Literal["submit", "read", "admin"]
BEARER = HTTPBearer(
    scheme_name="ApiKey",
    description="An API key, scoped to one workspace. Scopes: `submit`, `read`; `admin` includes both.",
    auto_error=False,
)
_REALM = 'Bearer realm="forensic-evals"'


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated client and what its request may use."""

    api: Collaborators
    workspace_id: str


class Requires:
    """A dependency that lets a key pass that has one of the scopes."""

    def __init__(self, *scopes: Scope) -> None:
        self._scopes = frozenset(scopes) | {"admin"}

    async def __call__(
        self, request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)]
    ) -> Caller:
        """Return who asks.

        Raises:
            ProblemError: nobody known, or somebody who may not.
            StoreUnavailableError: nobody can say.
        """
        if credentials is None:
            raise ProblemError(
                "unauthenticated",
                "Send an API key: `Authorization: Bearer <key>`.",
                headers={"www-authenticate": _REALM},
            )
        doorman: Doorman = request.app.state.doorman
        key = await doorman.authenticate(credentials.credentials)
        if key is None:
            raise ProblemError(
                "unauthenticated",
                "The API key is not valid.",
                headers={"www-authenticate": f'{_REALM}, error="invalid_token"'},
            )
        if not self._scopes & key.scopes:
            needed = " or ".join(sorted(self._scopes))
            raise ProblemError(
                "insufficient_scope",
                f"The API key needs the scope {needed}.",
                headers={"www-authenticate": f'{_REALM}, error="insufficient_scope"'},
            )
        return Caller(request.app.state.collaborators, key.workspace_id)


Reads = Annotated[Caller, Depends(Requires("read"))]
Submits = Annotated[Caller, Depends(Requires("submit"))]
AnyKey = Annotated[Caller, Depends(Requires("read", "submit"))]
