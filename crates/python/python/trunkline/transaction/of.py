"""The entry point: opens a queue on a connection."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Protocol, TypeVar, overload

from trunkline._trunkline import schema_of
from trunkline.codec import Codec, codec_of
from trunkline.transaction.async_queue import AsyncQueue
from trunkline.transaction.connection import KNOWN, async_runner, runner
from trunkline.transaction.payload_text import PayloadText
from trunkline.transaction.sync_queue import SyncQueue
from trunkline.worker import Task

T = TypeVar("T")


class _Rows(Protocol):
    def fetchall(self) -> Any: ...


class Blocking(Protocol):
    """A connection of psycopg, or a connection or session of SQLAlchemy."""

    def execute(self, *args: Any, **kwargs: Any) -> _Rows:
        """Runs a statement, and waits for its result."""
        ...


class Awaiting(Protocol):
    """An async connection of psycopg or asyncpg, or an async connection or session of
    SQLAlchemy."""

    def execute(self, *args: Any, **kwargs: Any) -> Awaitable[Any]:
        """Runs a statement, and returns an awaitable."""
        ...


class OfDjango(Protocol):
    """`django.db.connection`, or one of `django.db.connections`."""

    def cursor(self) -> Any:
        """Returns a cursor."""
        ...


class OfLibrary(Protocol[T]):
    """A queue of the library, sync or async, with its name and codec."""

    @property
    def name(self) -> str:
        """The queue's name."""
        ...
    @property
    def codec(self) -> Codec[T]:
        """The codec of the queue's payloads."""
        ...
    @property
    def schema(self) -> str:
        """The name of the schema that contains the queue."""
        ...


@overload
def queue(connection: Blocking, name: str, type: type[T] | Codec[T], *, schema: str | None = ...) -> SyncQueue[T]: ...
@overload
def queue(connection: Awaiting, name: str, type: type[T] | Codec[T], *, schema: str | None = ...) -> AsyncQueue[T]: ...
@overload
def queue(connection: OfDjango, name: str, type: type[T] | Codec[T], *, schema: str | None = ...) -> SyncQueue[T]: ...
@overload
def queue(connection: Blocking, name: str, type: object, *, schema: str | None = ...) -> SyncQueue[Any]: ...
@overload
def queue(connection: Awaiting, name: str, type: object, *, schema: str | None = ...) -> AsyncQueue[Any]: ...
@overload
def queue(connection: OfDjango, name: str, type: object, *, schema: str | None = ...) -> SyncQueue[Any]: ...
@overload
def queue(connection: Blocking, name: OfLibrary[T] | Task[T], *, schema: str | None = ...) -> SyncQueue[T]: ...
@overload
def queue(connection: Awaiting, name: OfLibrary[T] | Task[T], *, schema: str | None = ...) -> AsyncQueue[T]: ...
@overload
def queue(connection: OfDjango, name: OfLibrary[T] | Task[T], *, schema: str | None = ...) -> SyncQueue[T]: ...
def queue(connection: Any, name: Any, type: Any = Any, *, schema: str | None = None) -> Any:
    """Opens a queue in a connection's transaction. Returns a `SyncQueue`, or an `AsyncQueue` if the
    connection is asynchronous.

    `name` and `type` are as in `Db.queue`. Instead of both, pass a queue that `Db.queue` opened, or
    a task. `schema` is the schema that contains the queues. Its default is the schema of the queue
    or of the task's application, or the one that the environment names (TRUNKLINE_SCHEMA or
    PGSERVICE). The call costs nothing until a verb is called. On a connection with autocommit, each
    verb is a transaction, and `take` is refused. Raises `TypeError` for any other connection.
    """
    codec = codec_of(type) if isinstance(name, str) else name.codec
    named = name if isinstance(name, str) else name.queue if isinstance(name, Task) else name.name
    of: str = schema or (schema_of("") if isinstance(name, str) else name.app.schema if isinstance(name, Task) else name.schema)
    payloads: PayloadText[Any] = PayloadText(codec)
    blocks = runner(connection)
    if blocks is not None:
        return SyncQueue(connection, blocks, of, named, payloads)
    awaits = async_runner(connection)
    if awaits is not None:
        return AsyncQueue(connection, awaits, of, named, payloads)
    kind = connection.__class__
    raise TypeError(f"{kind.__module__}.{kind.__qualname__} is not {KNOWN}")
