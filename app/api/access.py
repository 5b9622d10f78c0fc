"""Who asks, and whether they may: bearer keys, checked before anything else of a request is looked at."""

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from fastapi import Depends, Request
from fastapi.openapi.models import HTTPBearer
from fastapi.security.base import SecurityBase
from fastapi.security.utils import get_authorization_scheme_param

from app.api.collaborators import Collaborators
from app.api.problems import ProblemError
from app.pipeline.access import Doorman

Scope: TypeAlias = Literal["submit", "read", "admin"]
_REALM = 'Bearer realm="forensic-evals"'


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated client and what its request may use."""

    api: Collaborators
    workspace_id: str


class Requires(SecurityBase):
    """A dependency that lets a key pass that has one of the scopes, and the security scheme of its routes.

    One dependency where FastAPI's own scheme would make it two: 15 of a status poll's 115 µs outside the database.
    """

    scheme_name = "ApiKey"
    model = HTTPBearer(
        description="An API key, scoped to one workspace. Scopes: `submit`, `read`; `admin` includes both."
    )

    def __init__(self, *scopes: Scope) -> None:
        self._scopes = frozenset(scopes) | {"admin"}

    async def __call__(self, request: Request) -> Caller:
        """Return who asks.

        Raises:
            ProblemError: nobody known, or somebody who may not.
            StoreUnavailableError: nobody can say.
        """
        scheme, credentials = get_authorization_scheme_param(request.headers.get("authorization"))
        if scheme.lower() != "bearer" or not credentials:
            raise _unauthenticated("Send an API key: `Authorization: Bearer <key>`.", _REALM)
        doorman: Doorman = request.app.state.doorman
        key = await doorman.authenticate(credentials)
        if key is None:
            raise _unauthenticated("The API key is not valid.", f'{_REALM}, error="invalid_token"')
        if not self._scopes & key.scopes:
            raise ProblemError(
                "insufficient_scope",
                f"The API key needs the scope {' or '.join(sorted(self._scopes))}.",
                headers={"www-authenticate": f'{_REALM}, error="insufficient_scope"'},
            )
        return Caller(request.app.state.collaborators, key.workspace_id)


def _unauthenticated(detail: str, challenge: str) -> ProblemError:
    return ProblemError("unauthenticated", detail, headers={"www-authenticate": challenge})


Reads = Annotated[Caller, Depends(Requires("read"))]
Submits = Annotated[Caller, Depends(Requires("submit"))]
AnyKey = Annotated[Caller, Depends(Requires("read", "submit"))]
