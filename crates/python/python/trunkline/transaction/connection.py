"""Which driver a connection is of, without importing any."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from trunkline.transaction.calls import Call

Rows = Sequence[Sequence[Any]]
Run = Callable[[Any, Call], Rows]
RunAsync = Callable[[Any, Call], Awaitable[Rows]]

KNOWN = "a connection of psycopg 3, asyncpg, SQLAlchemy 2 (or a session) or Django"


def runner(connection: object) -> Run | None:
    """What runs a call on a connection that blocks; none where it awaits."""
    names = _names(connection)
    if ("psycopg", "Connection") in names:
        from trunkline.transaction import on_psycopg

        return on_psycopg.run
    if not {("sqlalchemy", "Connection"), ("sqlalchemy", "Session"), ("sqlalchemy", "scoped_session")}.isdisjoint(names):
        from trunkline.transaction import on_sqlalchemy

        return on_sqlalchemy.run
    if not {("django", "BaseDatabaseWrapper"), ("django", "ConnectionProxy")}.isdisjoint(names):
        from trunkline.transaction import on_django

        return on_django.run
    return None


def async_runner(connection: object) -> RunAsync | None:
    """What runs a call on a connection that awaits; none where it blocks."""
    names = _names(connection)
    if ("psycopg", "AsyncConnection") in names:
        from trunkline.transaction import on_psycopg

        return on_psycopg.run_async
    if not {("asyncpg", "Connection"), ("asyncpg", "PoolConnectionProxy")}.isdisjoint(names):
        from trunkline.transaction import on_asyncpg

        return on_asyncpg.run_async
    if not {("sqlalchemy", "AsyncConnection"), ("sqlalchemy", "AsyncSession"), ("sqlalchemy", "async_scoped_session")}.isdisjoint(names):
        from trunkline.transaction import on_sqlalchemy

        return on_sqlalchemy.run_async
    return None


def _names(connection: object) -> set[tuple[str, str]]:
    """The classes of an object, each by its package and its name."""
    return {(of.__module__.partition(".")[0], of.__name__) for of in type(connection).__mro__}
