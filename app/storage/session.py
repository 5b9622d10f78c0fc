"""One open transaction's connection: the only place where statements are sent."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from sqlalchemy import CursorResult, Dialect, Executable, Row, Table
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.sealing import Seal
from app.storage.trouble import translated

_SLICE = 500
"""Rows encoded at once: a few milliseconds."""
Parameters: TypeAlias = Mapping[str, Any]


class Session:
    """What reads and writes share. Statements are built once, at import, so that their compiled form is found fast."""

    def __init__(self, connection: AsyncConnection, seal: Seal) -> None:
        self._connection = connection
        self._seal = seal

    async def run(
        self, statement: Executable, parameters: Parameters | Sequence[Parameters] | None = None
    ) -> CursorResult[Any]:
        """Send a statement. Raises what ``translated`` does."""
        with translated():
            return await self._connection.execute(statement, parameters)

    async def one(self, statement: Executable, parameters: Parameters) -> Row[Any] | None:
        """Return the only row, if there is one."""
        return (await self.run(statement, parameters)).one_or_none()

    async def insert_many(self, table: Table, rows: Iterable[Mapping[str, Any]]) -> None:
        """Insert rows that all have the same keys, by COPY where there is one.

        Rows are drawn a slice at a time, so that the event loop has its turn and PostgreSQL works meanwhile. The
        transaction must have sent a statement before: the driver begins it with the first.
        """
        slices = _slices(rows)
        first = next(slices, None)
        if first is None:
            return
        every = itertools.chain([first], slices)
        if self._connection.dialect.name != "postgresql":
            for part in every:
                await self.run(table.insert(), part)
            return
        with translated():
            raw = await self._connection.get_raw_connection()
            await raw.driver_connection.copy_records_to_table(  # type: ignore[union-attr]  # never None when open
                table.name, columns=list(first[0]), records=_records(table, every, self._connection.dialect)
            )


def _slices(rows: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    remaining = iter(rows)
    return iter(lambda: list(itertools.islice(remaining, _SLICE)), [])


async def _records(
    table: Table, slices: Iterable[list[Mapping[str, Any]]], dialect: Dialect
) -> AsyncIterator[tuple[Any, ...]]:
    for part in slices:
        for record in zip(
            *(_bound(table, name, [row[name] for row in part], dialect) for name in part[0]), strict=True
        ):
            yield record
        await asyncio.sleep(0)


def _bound(table: Table, name: str, values: list[Any], dialect: Dialect) -> Iterable[Any]:
    """Return the values of a column as a statement would bind them."""
    process = table.c[name].type.dialect_impl(dialect).bind_processor(dialect)
    return values if process is None else map(process, values)
