"""The Store port on a real database: when transactions open and close, and what is true when one could not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.pipeline.errors import StoreUnavailableError
from app.pipeline.ports import Reader, Transaction
from app.storage import migrating
from app.storage.engine import BUSY_SECONDS, for_reading, for_writing, open_engine
from app.storage.reading import DatabaseReader
from app.storage.sealing import Seal
from app.storage.transaction import DatabaseTransaction
from app.storage.trouble import translated

_CONNECT_DELAYS_SECONDS = (0.1, 0.4)


class DatabaseStore:
    """PostgreSQL or a SQLite file, by URL.

    On SQLite there is one writer at a time; those of this process queue up in order, since SQLite's own waiting
    is by polling and leaves some behind. Several processes may use one file. Transactions do not nest.
    """

    def __init__(self, url: str, secret_key: str, pool_size: int = 10) -> None:
        self._engine = open_engine(url, pool_size)
        self._writing = for_writing(self._engine)
        self._reading = for_reading(self._engine)
        self._seal = Seal(secret_key)
        self._writer = asyncio.Lock() if self._engine.dialect.name == "sqlite" else None
        self._current = False

    def __repr__(self) -> str:
        return f"DatabaseStore({self._engine.url.render_as_string(hide_password=True)!r})"

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[Transaction]:
        """Open a write transaction: committed on leaving, rolled back on an exception.

        Raises:
            StoreUnavailableError: the database does not answer. When it fell silent during the commit, nobody knows
                whether it was kept; every write that matters is safe to repeat.
        """
        async with self._turn(), self._connection(self._writing) as connection:
            yield DatabaseTransaction(connection, self._seal)
            with translated():
                await connection.commit()

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Reader]:
        """Open a read transaction. Raises StoreUnavailableError."""
        async with self._connection(self._reading) as connection:
            yield DatabaseReader(connection, self._seal)

    async def check(self) -> None:
        """Return when the database answers and its schema is current. Raises StoreUnavailableError."""
        async with self._connection(self._reading) as connection:
            with translated():
                await connection.execute(text("SELECT 1"))
                if not self._current:
                    await connection.run_sync(migrating.require_current)
        self._current = True

    async def migrate(self) -> None:
        """Bring the schema up to date; several processes may do so at once."""
        await migrating.migrate(self._engine.url)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._engine.dispose()

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        if self._writer is None:
            yield
            return
        try:
            async with asyncio.timeout(BUSY_SECONDS):
                await self._writer.acquire()
        except TimeoutError:
            raise StoreUnavailableError("another transaction has been writing for too long") from None
        try:
            yield
        finally:
            self._writer.release()

    @asynccontextmanager
    async def _connection(self, engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
        """Lend a connection with a transaction begun; what is not committed is rolled back."""
        connection = await _connect(engine)
        try:
            with translated():
                await connection.begin()
            yield connection
        except StoreUnavailableError:
            with suppress(StoreUnavailableError), translated():  # else a hung server would hang the rollback, too
                await asyncio.shield(connection.invalidate())
            raise
        finally:
            with suppress(StoreUnavailableError), translated():  # a connection that is dead has rolled back
                await asyncio.shield(connection.close())


async def _connect(engine: AsyncEngine) -> AsyncConnection:
    """Connect. Nothing was sent yet that could be done twice, so a server on its way back is waited for a little."""
    for delay in _CONNECT_DELAYS_SECONDS:
        try:
            with translated():
                return await engine.connect()
        except StoreUnavailableError:
            await asyncio.sleep(delay)
    with translated():
        return await engine.connect()
