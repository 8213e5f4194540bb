"""Connections of psycopg 3, sync and async. Uses its own cursors, because the user's connection may
create cursors that return dictionaries or have other placeholders."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from trunkline.transaction.calls import Call
from trunkline.transaction.refusal import refuse_outside, refused


def run(connection: Any, call: Call) -> Sequence[Sequence[Any]]:
    """Runs a call and returns its rows. Raises `LeaseLost` for a lost lease; other errors are
    psycopg's."""
    psycopg: Any = import_module("psycopg")
    if call.needs_transaction and connection.autocommit:
        if _is_behind(psycopg, connection):
            with connection.pipeline():
                pass
        with connection.lock:  # another thread's statement may still run
            refuse_outside(call, _is_outside(psycopg, connection))
    with psycopg.Cursor(connection, row_factory=psycopg.rows.tuple_row) as cursor, refused(psycopg.Error):
        _plain(cursor)
        rows: Sequence[Sequence[Any]] = cursor.execute(_text(call), call.texts).fetchall()
    return rows


async def run_async(connection: Any, call: Call) -> Sequence[Sequence[Any]]:
    """Runs a call and returns its rows, like `run`."""
    psycopg: Any = import_module("psycopg")
    if call.needs_transaction and connection.autocommit:
        if _is_behind(psycopg, connection):
            async with connection.pipeline():
                pass
        async with connection.lock:  # another task's statement may still run
            refuse_outside(call, _is_outside(psycopg, connection))
    async with psycopg.AsyncCursor(connection, row_factory=psycopg.rows.tuple_row) as cursor:
        _plain(cursor)
        with refused(psycopg.Error):
            rows: Sequence[Sequence[Any]] = await (await cursor.execute(_text(call), call.texts)).fetchall()
    return rows


def _is_behind(psycopg: Any, connection: Any) -> bool:
    """Returns true if commands of a pipeline have no answer yet, so that it is unknown whether the
    connection has a transaction. An inner pipeline waits for the answers, but it also commits the
    statements before it. So only a call that needs a transaction starts one."""
    info, pq = connection.info, psycopg.pq
    return bool(info.pipeline_status != pq.PipelineStatus.OFF and info.transaction_status == pq.TransactionStatus.ACTIVE)


def _is_outside(psycopg: Any, connection: Any) -> bool:
    """Returns true if a connection with autocommit has no transaction, or if that is unknown."""
    status = psycopg.pq.TransactionStatus
    return connection.info.transaction_status in (status.IDLE, status.ACTIVE)


def _text(call: Call) -> str:
    return call.written("%s" for _ in call.texts)


def _plain(cursor: Any) -> None:
    """Makes the cursor pass texts unchanged, regardless of the converters of the user's
    connection."""
    string: Any = import_module("psycopg.types.string")
    cursor.adapters.register_dumper(str, string.StrDumper)
    cursor.adapters.register_loader("varchar", string.TextLoader)
