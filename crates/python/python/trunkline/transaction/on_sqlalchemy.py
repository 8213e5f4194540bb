"""Connections and sessions of SQLAlchemy 2, sync and async, on any driver of the engine."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from trunkline.transaction.calls import Call
from trunkline.transaction.refusal import refused


def run(connection: Any, call: Call) -> Sequence[Sequence[Any]]:
    """Runs a call and returns its rows. Raises `LeaseLost` for a lost lease; other errors are
    SQLAlchemy's."""
    sqlalchemy: Any = import_module("sqlalchemy")
    with refused(sqlalchemy.exc.DBAPIError):
        rows: Sequence[Sequence[Any]] = connection.execute(*_statement(sqlalchemy, call)).fetchall()
    return rows


async def run_async(connection: Any, call: Call) -> Sequence[Sequence[Any]]:
    """Runs a call and returns its rows, like `run`."""
    sqlalchemy: Any = import_module("sqlalchemy")
    with refused(sqlalchemy.exc.DBAPIError):
        rows: Sequence[Sequence[Any]] = (await connection.execute(*_statement(sqlalchemy, call))).fetchall()
    return rows


def _statement(sqlalchemy: Any, call: Call) -> tuple[Any, dict[str, Any]]:
    names = [f"v{number}" for number in range(len(call.texts))]
    return sqlalchemy.text(call.written(f":{name}" for name in names)), dict(zip(names, call.texts))
