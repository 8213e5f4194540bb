"""Connections and sessions of SQLAlchemy 2, sync and async, on any driver of the engine."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from trunkline.transaction.calls import Call
from trunkline.transaction.refusal import refuse_outside, refused


def run(connection: Any, call: Call) -> Sequence[Sequence[Any]]:
    """Runs a call and returns its rows. Raises `LeaseLost` for a lost lease; other errors are
    SQLAlchemy's."""
    sqlalchemy: Any = import_module("sqlalchemy")
    with refused(sqlalchemy.exc.DBAPIError):
        if call.needs_transaction:
            opened = connection.connection() if hasattr(connection, "get_bind") else connection  # of a session
            refuse_outside(call, _commits_each(opened))
        rows: Sequence[Sequence[Any]] = connection.execute(*_statement(sqlalchemy, call)).fetchall()
    return rows


async def run_async(connection: Any, call: Call) -> Sequence[Sequence[Any]]:
    """Runs a call and returns its rows, like `run`."""
    sqlalchemy: Any = import_module("sqlalchemy")
    with refused(sqlalchemy.exc.DBAPIError):
        if call.needs_transaction:
            opened = await connection.connection() if hasattr(connection, "get_bind") else connection  # of a session
            refuse_outside(call, _commits_each(opened.sync_connection))
        rows: Sequence[Sequence[Any]] = (await connection.execute(*_statement(sqlalchemy, call))).fetchall()
    return rows


def _commits_each(connection: Any) -> bool:
    """Returns true if the driver's connection has autocommit, as with
    `isolation_level="AUTOCOMMIT"`."""
    return bool(getattr(connection.connection.dbapi_connection, "autocommit", False))


def _statement(sqlalchemy: Any, call: Call) -> tuple[Any, dict[str, Any]]:
    names = [f"v{number}" for number in range(len(call.texts))]
    return sqlalchemy.text(call.written(f":{name}" for name in names)), dict(zip(names, call.texts))
