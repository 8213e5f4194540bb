"""SQLAlchemy 2: connections and sessions, both faces, on whatever driver the engine has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trunkline.transaction.calls import Call
from trunkline.transaction.refusal import refused

if TYPE_CHECKING:
    from sqlalchemy import TextClause


def run(connection: Any, call: Call) -> Sequence[Sequence[Any]]:
    from sqlalchemy.exc import DBAPIError

    with refused(DBAPIError):
        rows: Sequence[Sequence[Any]] = connection.execute(*_statement(call)).fetchall()
    return rows


async def run_async(connection: Any, call: Call) -> Sequence[Sequence[Any]]:
    from sqlalchemy.exc import DBAPIError

    with refused(DBAPIError):
        rows: Sequence[Sequence[Any]] = (await connection.execute(*_statement(call))).fetchall()
    return rows


def _statement(call: Call) -> tuple[TextClause, dict[str, Any]]:
    from sqlalchemy import text

    names = [f"v{number}" for number in range(len(call.values))]
    return text(call.written(f":{name}" for name in names)), dict(zip(names, call.values))
