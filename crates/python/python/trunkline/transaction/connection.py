"""Finds out to which driver a connection belongs, without importing any driver."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from trunkline.transaction.calls import Call

Rows = Sequence[Sequence[Any]]
Run = Callable[[Any, Call], Rows]
RunAsync = Callable[[Any, Call], Awaitable[Rows]]

KNOWN = "a connection of psycopg 3, asyncpg, SQLAlchemy 2 (or a session) or Django"


def runner(connection: object) -> Run | None:
    """Returns the function that runs a call on a synchronous connection, or `None` for any other
    connection."""
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
    """Returns the function that runs a call on an asynchronous connection, or `None` for any other
    connection."""
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
    """Returns the classes of an object, each as its package and its name. For a proxy, as tracing
    libraries put around connections, they include the classes of the connection within it."""
    return {(of.__module__.partition(".")[0], of.__name__) for of in (*type(connection).__mro__, *connection.__class__.__mro__)}
