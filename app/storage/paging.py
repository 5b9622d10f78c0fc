"""Lists by keyset: ``after`` names the last object seen, and the next page begins behind its sort key.

A page costs the same however far down the list it is, and rows that come or go elsewhere move nothing.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import ColumnElement, Row, Select, Table, select, tuple_

from app.pipeline.errors import CursorError
from app.pipeline.values import Page, Slice
from app.storage.session import Session

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """A list that can be paged through: what to select of a table, in which order, and what to make of a row."""

    query: Select[Any]
    table: Table
    key: tuple[str, ...]
    """Columns of ``table`` that order the list, ``id`` the last."""
    build: Callable[[Row[Any]], T]

    async def page(
        self, session: Session, scope: Sequence[ColumnElement[bool]], where: Sequence[ColumnElement[bool]], page: Page
    ) -> Slice[T]:
        """Return a page of the rows that match.

        Args:
            session: Where to read.
            scope: What makes a row part of the list at all; a cursor must be.
            where: The filter, which a cursor need not match (it may have changed since).
            page: Which part.

        Raises:
            CursorError: ``page.after`` is not in the list.
        """
        columns = [self.table.c[name] for name in self.key]
        statement = self.query.where(*scope, *where)
        if page.after is not None:
            last = (await session.run(select(*columns).where(self.table.c.id == page.after, *scope))).one_or_none()
            if last is None:
                raise CursorError(page.after[:80])
            here, there = tuple_(*columns), tuple_(*last)
            statement = statement.where(here < there if page.descending else here > there)
        order = [column.desc() if page.descending else column for column in columns]
        rows = (await session.run(statement.order_by(*order).limit(page.limit + 1))).all()
        return Slice([self.build(row) for row in rows[: page.limit]], len(rows) > page.limit)


def among(table: Table, **alternatives: Collection[Any]) -> list[ColumnElement[bool]]:
    """Return the conditions that each column named is one of its values; a column without values is free.

    Numbers come from clients; one that no column could hold matches nothing.
    """
    return [
        table.c[name].in_([one for one in values if not isinstance(one, int) or holds(one)])
        for name, values in alternatives.items()
        if values
    ]


def holds(number: int) -> bool:
    """Return whether an Integer column can hold the number; a driver refuses the statement otherwise."""
    return -(2**31) <= number < 2**31
