"""Writes the OpenAPI document: ``python -m app.api.openapi > openapi/openapi.json``."""

import sys

import msgspec

from app.api.application import ROUTES
from app.api.schema.document import document


def text() -> str:
    """Return the document as it is committed."""
    return msgspec.json.format(document(ROUTES), indent=2).decode() + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
