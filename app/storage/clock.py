"""The database's clock, in SQL: leases and schedules of several machines are only comparable by one clock.

PostgreSQL keeps ``timestamptz``; its ``now()`` is the start of the transaction. SQLite keeps UTC text in the one
format that SQLAlchemy reads and that sorts as time does, to the millisecond its clock has.
"""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, DateTime, Dialect, Float
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator

_SQLITE_FORMAT = "'%Y-%m-%d %H:%M:%f000'"


class Instant(TypeDecorator[datetime]):
    """A point in time: aware and in UTC in Python, whatever the database makes of it."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Refuse naive times; give SQLite, which has no zones, UTC."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a time without zone")
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the time in UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Now(FunctionElement[datetime]):
    """The present by the database's clock."""

    type = Instant()
    inherit_cache = True
    name = "now"


class _Later(FunctionElement[datetime]):
    """The present plus a number of seconds."""

    type = Instant()
    inherit_cache = True
    name = "later"


def later(seconds: str) -> _Later:
    """Return the present plus as many seconds (negative: minus) as the parameter of this name says."""
    return _Later(BindParameter(seconds, type_=Float()))


class SecondsSince(FunctionElement[float]):
    """Seconds from a point in time to the present."""

    type = Float()
    inherit_cache = True
    name = "seconds_since"

    def __init__(self, instant: ColumnElement[datetime]) -> None:
        super().__init__(instant)


@compiles(Now)
def _now(element: Now, compiler: SQLCompiler, **rest: Any) -> str:
    return "now()"


@compiles(Now, "sqlite")
def _now_sqlite(element: Now, compiler: SQLCompiler, **rest: Any) -> str:
    return f"strftime({_SQLITE_FORMAT}, 'now')"


@compiles(_Later)
def _later(element: _Later, compiler: SQLCompiler, **rest: Any) -> str:
    return f"(now() + make_interval(secs => {compiler.process(element.clauses, **rest)}))"


@compiles(_Later, "sqlite")
def _later_sqlite(element: _Later, compiler: SQLCompiler, **rest: Any) -> str:
    seconds = compiler.process(element.clauses, **rest)
    return f"strftime({_SQLITE_FORMAT}, 'now', printf('%+.3f seconds', {seconds}))"


@compiles(SecondsSince)
def _since(element: SecondsSince, compiler: SQLCompiler, **rest: Any) -> str:
    return f"extract(epoch FROM now() - {compiler.process(element.clauses, **rest)})::float8"


@compiles(SecondsSince, "sqlite")
def _since_sqlite(element: SecondsSince, compiler: SQLCompiler, **rest: Any) -> str:
    return f"(julianday('now') - julianday({compiler.process(element.clauses, **rest)})) * 86400.0"
