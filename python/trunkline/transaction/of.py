"""The one way in: a queue on a connection."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Protocol, TypeVar, overload

from trunkline.transaction.async_queue import AsyncQueue
from trunkline.transaction.connection import KNOWN, async_runner, runner
from trunkline.transaction.payload_text import PayloadText, text_of
from trunkline.transaction.sync_queue import SyncQueue

T = TypeVar("T")


class _Rows(Protocol):
    def fetchall(self) -> Any: ...


class Blocking(Protocol):
    """A connection of psycopg, a connection or session of SQLAlchemy."""

    def execute(self, *args: Any, **kwargs: Any) -> _Rows: ...


class Awaiting(Protocol):
    """A connection of psycopg (async) or asyncpg, an async connection or session of SQLAlchemy."""

    def execute(self, *args: Any, **kwargs: Any) -> Awaitable[Any]: ...


class OfDjango(Protocol):
    """`django.db.connection`, or one of `django.db.connections`."""

    def cursor(self) -> Any: ...


@overload
def queue(connection: Blocking, name: str, payload: type[T], *, schema: str = ...) -> SyncQueue[T]: ...
@overload
def queue(connection: Awaiting, name: str, payload: type[T], *, schema: str = ...) -> AsyncQueue[T]: ...
@overload
def queue(connection: OfDjango, name: str, payload: type[T], *, schema: str = ...) -> SyncQueue[T]: ...
def queue(connection: Any, name: str, payload: type[T], *, schema: str = "trunkline") -> SyncQueue[T] | AsyncQueue[T]:
    """A queue in the transaction of a connection: with the verbs of `SyncQueue`, or of `AsyncQueue` where the connection awaits.

    name: the queue's. payload: the type of its payloads, as `Db.queue` takes it. schema: the one that holds the queues. Costs nothing until
    a verb is called. A connection that commits by itself commits each verb by itself. Errs with `TypeError` on any other connection.
    """
    payloads: PayloadText[T] = text_of(payload)
    blocks = runner(connection)
    if blocks is not None:
        return SyncQueue(connection, blocks, schema, name, payloads)
    awaits = async_runner(connection)
    if awaits is not None:
        return AsyncQueue(connection, awaits, schema, name, payloads)
    raise TypeError(f"{type(connection).__module__}.{type(connection).__qualname__} is not {KNOWN}")
