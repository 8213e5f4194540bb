"""Connections of asyncpg, including those from a pool."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from trunkline.transaction.calls import Call
from trunkline.transaction.refusal import refuse_outside, refused


async def run_async(connection: Any, call: Call) -> Sequence[Sequence[Any]]:
    """Runs a call and returns its rows. Raises `LeaseLost` for a lost lease; other errors are
    asyncpg's."""
    refuse_outside(call, not connection.is_in_transaction())
    text = call.written(f"${number}" for number in range(1, len(call.texts) + 1))
    with refused(import_module("asyncpg").PostgresError):
        rows: Sequence[Sequence[Any]] = await connection.fetch(text, *call.texts)
    return rows
