"""Django's connections: `django.db.connection`, or one of `django.db.connections`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from trunkline.transaction.calls import Call
from trunkline.transaction.refusal import refuse_outside, refused


def run(connection: Any, call: Call) -> Sequence[Sequence[Any]]:
    """Runs a call and returns its rows. Raises `LeaseLost` for a lost lease; other errors are
    Django's."""
    refuse_outside(call, connection.get_autocommit() and not connection.in_atomic_block)
    with connection.cursor() as cursor, refused(import_module("django.db").Error):
        cursor.execute(call.written("%s" for _ in call.texts), call.texts)
        rows: Sequence[Sequence[Any]] = cursor.fetchall()
    return rows
