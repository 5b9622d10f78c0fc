"""What the drivers raise becomes one of two errors, and neither carries a word of a transcript.

Messages of drivers quote parameters and rows (``Failing row contains (...)``); they end in logs. So only the class of
the error, its SQLSTATE and the constraint's name are kept, and the original is cut off.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg
from sqlalchemy.exc import DBAPIError, OperationalError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from app.pipeline.errors import StoreUnavailableError

_AWAY = ("08", "25006", "25P03", "28", "3D", "40", "53", "55000", "55P03", "57", "58")
"""SQLSTATEs of a server that is away, full, shutting down, a standby or closed to us, or that chose us as the victim;
trying again may help."""


class StatementRefusedError(Exception):
    """The database refused a statement for what it says: a defect of this program, never of its surroundings."""


@contextmanager
def translated() -> Iterator[None]:
    """Translate what comes out of a database call.

    Raises:
        StoreUnavailableError: no connection, no answer in time, or none that holds.
        StatementRefusedError: anything else the database said.
        ValueError: a value that cannot be stored, such as NaN in JSON.
    """
    try:
        yield
    except PoolTimeoutError:
        raise StoreUnavailableError("every database connection is in use") from None
    except DBAPIError as error:
        raise _translate(error, error.orig) from None
    except StatementError as error:
        raise ValueError(str(error.orig)) from None
    except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise _translate(None, error) from None
    except OverflowError as error:  # SQLite's way of refusing a number that no column can hold
        raise StatementRefusedError(type(error).__name__) from None
    except OSError as error:
        raise StoreUnavailableError(f"{type(error).__name__}: {error}") from None


def _translate(wrapper: DBAPIError | None, original: BaseException | None) -> Exception:
    cause = original.__cause__ if wrapper is not None and original is not None and original.__cause__ else original
    state = getattr(cause, "sqlstate", None) or ""
    constraint = getattr(cause, "constraint_name", None) or ""
    what = " ".join(part for part in (type(cause).__name__, state, constraint) if part)
    sqlite_away = wrapper is not None and isinstance(wrapper, OperationalError) and not state
    lost = wrapper is not None and wrapper.connection_invalidated
    if sqlite_away:  # SQLite's own words (locked, disk full, no such table) hold nothing of ours
        what = f"{what}: {original}"
    if sqlite_away or lost or state.startswith(_AWAY) or isinstance(cause, asyncpg.InterfaceError):
        return StoreUnavailableError(what)
    return StatementRefusedError(what)
