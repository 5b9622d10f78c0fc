"""Column types that cannot hold what one of the databases refuses.

PostgreSQL refuses NUL in text, no driver can encode half a surrogate pair, and JSON has no NaN. Transcripts and judge
models produce all three, and clients send them as filters, so the types that every column is made of put U+FFFD in
the place of the first two and refuse the third; nobody has to remember to.
"""

import json
import re
from collections.abc import Callable
from typing import Any

from sqlalchemy import Dialect, String, Text
from sqlalchemy.types import TypeDecorator

from app.transcripts.text import REPLACEMENT, replace_unstorable

_encode = json.JSONEncoder(allow_nan=False).encode
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def storable(text: str) -> str:
    """Return text with NUL and lone surrogates replaced by U+FFFD, one for one."""
    if text.isascii() and "\0" not in text:
        return text
    return _UNSTORABLE.sub(REPLACEMENT, text)


def _bound(text: str | None) -> str | None:
    return None if text is None else storable(text)


class Words(TypeDecorator[str]):
    """Any text."""

    impl = Text
    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Callable[[str | None], str | None]:
        """Return what makes a text storable; not ``process_bind_param``, whose wrapping doubles the cost a value."""
        return _bound


class Identifier(Words):
    """Text made here that is compared byte by byte, whatever the database's collation."""

    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> Any:
        """Give PostgreSQL its fastest collation."""
        return dialect.type_descriptor(String(collation="C") if dialect.name == "postgresql" else Text())


class Json(TypeDecorator[Any]):
    """A JSON value as ASCII text, the same on both databases; ``None`` is SQL NULL."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        """Encode; raises ValueError for NaN and the infinities."""
        return None if value is None else replace_unstorable(_encode(value))[0]

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        """Decode."""
        return None if value is None else json.loads(value)
