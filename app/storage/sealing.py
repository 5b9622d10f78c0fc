"""Webhook secrets at rest: whoever reads the database, or a backup of it, cannot sign in our name."""

import base64

from cryptography.fernet import Fernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF


class Seal:
    """Encrypts under a key derived from the installation's secret; shows neither."""

    __slots__ = ("_fernet",)

    def __init__(self, secret_key: str) -> None:
        derivation = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"forensic-evals webhook secrets")
        self._fernet = Fernet(base64.urlsafe_b64encode(derivation.derive(secret_key.encode())))

    def close(self, secret: str) -> bytes:
        """Return the secret sealed."""
        return self._fernet.encrypt(secret.encode())

    def open(self, sealed: bytes) -> str:
        """Return the secret.

        Raises:
            cryptography.fernet.InvalidToken: sealed under another key, or damaged.
        """
        return self._fernet.decrypt(sealed).decode()
