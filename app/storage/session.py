"""One open transaction's connection: the only place where statements are sent."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from sqlalchemy import CursorResult, Executable, Row, Table
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.sealing import Seal
from app.storage.trouble import translated

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

    async def insert_many(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows that all have the same keys, by COPY where there is one.

        The transaction must have sent a statement before: the driver begins it with the first.
        """
        if not rows:
            return
        if self._connection.dialect.name != "postgresql":
            await self.run(table.insert(), rows)
            return
        names = list(rows[0])
        processors = [_processor(table, name, self._connection) for name in names]
        with translated():
            raw = await self._connection.get_raw_connection()
            await raw.driver_connection.copy_records_to_table(  # type: ignore[union-attr]  # never None when open
                table.name,
                columns=names,
                records=[
                    tuple(
                        row[name] if to is None else to(row[name]) for name, to in zip(names, processors, strict=True)
                    )
                    for row in rows
                ],
            )


def _processor(table: Table, name: str, connection: AsyncConnection) -> Any:
    kind = table.c[name].type.dialect_impl(connection.dialect)
    return kind.bind_processor(connection.dialect)
