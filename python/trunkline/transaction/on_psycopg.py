"""psycopg 3, both faces. Cursors of our own, because the user's connection may make others: of dictionaries, or with other placeholders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, LiteralString, cast

from trunkline.transaction.calls import Call
from trunkline.transaction.refusal import refused

if TYPE_CHECKING:
    import psycopg


def run(connection: psycopg.Connection[Any], call: Call) -> Sequence[Sequence[Any]]:
    import psycopg

    with psycopg.Cursor(connection, row_factory=psycopg.rows.tuple_row) as cursor, refused(psycopg.Error):
        return cursor.execute(_text(call), call.values).fetchall()


async def run_async(connection: psycopg.AsyncConnection[Any], call: Call) -> Sequence[Sequence[Any]]:
    import psycopg

    async with psycopg.AsyncCursor(connection, row_factory=psycopg.rows.tuple_row) as cursor:
        with refused(psycopg.Error):
            return await (await cursor.execute(_text(call), call.values)).fetchall()


def _text(call: Call) -> LiteralString:
    return cast("LiteralString", call.written("%s" for _ in call.values))
