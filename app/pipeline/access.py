"""Access: who a bearer key belongs to. Keys are stored as SHA-256 only; they are random enough to need no salt."""

import hashlib
import time

from app.evaluation.model import DEFAULT_WORKSPACE
from app.pipeline.ports import Store
from app.pipeline.values import ApiKey

TRUST_SECONDS = 5.0
"""A key found valid is not looked up again for this long, so that a status poll costs one read; a revoked key may
work for as long."""
_CACHED_KEYS = 1024


class Doorman:
    """Knows which keys are valid, and remembers it for a few seconds."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, tuple[float, ApiKey]] = {}

    async def authenticate(self, key: str) -> ApiKey | None:
        """Return whose key this is, None when it is nobody's.

        Raises:
            StoreUnavailableError: nobody can say.
        """
        digest = key_sha256(key)
        found = self._known.get(digest)
        if found is not None and found[0] > time.monotonic():
            return found[1]
        async with self._store.read() as reader:
            api_key = await reader.find_key(digest)
        if api_key is None:
            self._known.pop(digest, None)
            return None
        if len(self._known) >= _CACHED_KEYS:
            self._known.clear()
        self._known[digest] = (time.monotonic() + TRUST_SECONDS, api_key)
        return api_key


def key_sha256(key: str) -> str:
    """Return the hash under which a key is stored."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


async def ensure_bootstrap_key(store: Store, key: str) -> None:
    """Make a key valid, with every scope, in the default workspace."""
    async with store.begin() as tx:
        await tx.ensure_key(
            key_sha256(key), name="bootstrap", workspace_id=DEFAULT_WORKSPACE, scopes=("submit", "read", "admin")
        )
