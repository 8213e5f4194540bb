"""A database with queues, for asyncio."""

from __future__ import annotations

from typing import Any, TypeVar, overload

from . import logs
from ._trunkline import Db as NativeDb, Queue as NativeQueue
from .codec import Codec, codec_of
from .errors import WrongType
from .loop import bridge
from .queue import Queue
from .seen import Description, Scheduled, record
from .settings import Setting, limit, settings

T = TypeVar("T")


class Db:
    """A database with Trunkline in it.

    A ``Db`` is cheap to share. All its queues share a few connections, and every statement is
    pipelined, so the number of concurrent callers does not matter. After a fork, the child
    cannot use its parent's ``Db`` and must connect itself.
    """

    def __init__(self, native: NativeDb) -> None:
        self.native = native

    @classmethod
    async def connect(cls, url: str = "") -> Db:
        """Connects to a database. ``url`` is a URL
        (``postgres://user@host/database?sslmode=verify-full``) or keywords and values
        (``host=/run/postgresql dbname=app``), with the same meaning as in libpq. Settings that it
        does not contain are taken from ``PGHOST`` and the other environment variables."""
        logs.begin()
        return cls(await NativeDb.connect(bridge(), url))

    @property
    def schema(self) -> str:
        """The name of the schema that contains the queues."""
        return self.native.schema

    async def migrate(self) -> int:
        """Migrates the schema to this library's version, in one transaction. It is safe to call
        this method again, and from many processes at once. Returns the number of applied steps."""
        return await self.native.migrate(bridge())

    async def create_queue(self, name: str, type: Any = Any, **named: Setting) -> None:
        """Creates a queue; does nothing if it exists with the same settings.

        ``type`` decides the type of the payloads in PostgreSQL: ``bytes`` are ``bytea``, ``str`` is
        ``text``, ``int`` is ``int8``, ``uuid.UUID`` is ``uuid``, everything else is ``jsonb``. The
        settings, all of them optional, are ``max_attempts`` (10), ``lease`` (30 s), ``max_batch``
        (1,024), ``priorities`` (1), ``aging`` (a minute), ``uniqueness`` (False), ``partitions``
        (0), ``per_key`` (1).
        """
        await self.native.create_queue(bridge(), name, codec_of(type).column, settings(named))

    async def alter_queue(self, name: str, **named: Setting) -> None:
        """Changes settings of a queue. Settings that are not named keep their values. Running
        workers keep ``lease`` and ``per_key``, and open queues ``max_batch``: restart programs."""
        await self.native.alter_queue(bridge(), name, settings(named))

    async def drop_queue(self, name: str) -> None:
        """Drops a queue with everything in it, including dead letters and archive."""
        await self.native.drop_queue(bridge(), name)

    @overload
    async def queue(self, name: str) -> Queue[Any]: ...
    @overload
    async def queue(self, name: str, type: type[T]) -> Queue[T]: ...
    @overload
    async def queue(self, name: str, type: Codec[T]) -> Queue[T]: ...
    @overload
    async def queue(self, name: str, type: object) -> Queue[Any]: ...
    async def queue(self, name: str, type: Any = Any) -> Queue[Any]:
        """Opens a queue whose payloads have the given type or codec. Raises :class:`NoQueue` if
        the queue does not exist, or :class:`WrongType` if its payloads have another type."""
        codec = codec_of(type)
        native = await self.native.queue(bridge(), name)
        check_column(native, codec)
        return Queue(native, codec, self.schema)

    async def list_queues(self) -> list[Description]:
        """Returns the descriptions of all queues, sorted by name."""
        return [record(Description, one) for one in await self.native.list_queues(bridge())]

    async def describe_queue(self, name: str) -> Description:
        """Returns the description of one queue. Raises :class:`NoQueue`."""
        (one,) = await self.native.describe_queue(bridge(), name)
        return record(Description, one)

    async def pause_queue(self, name: str) -> None:
        """Pauses a queue for all consumers: from now on no message can be dequeued, but messages
        can still be enqueued."""
        await self.native.pause_queue(bridge(), name)

    async def resume_queue(self, name: str) -> None:
        """Resumes a paused queue, and wakes its consumers."""
        await self.native.resume_queue(bridge(), name)

    async def limit_queue(
        self,
        name: str,
        *,
        max_leased: int | None = None,
        per_second: float | None = None,
        burst: int | None = None,
        key_per_second: float | None = None,
        key_burst: int | None = None,
    ) -> None:
        """Sets the limits on dequeues from a queue, which apply to all processes together. A limit
        that is not named is removed. In any ``t`` seconds, at most ``burst + t * per_second``
        messages are dequeued, and at most ``key_burst + t * key_per_second`` of a key started."""
        of_all, of_keys = (per_second, limit("burst", burst)), (key_per_second, limit("key_burst", key_burst))
        await self.native.limit_queue(bridge(), name, limit("max_leased", max_leased), of_all, of_keys)

    async def schedules(self) -> list[Scheduled]:
        """Returns all schedules, sorted by name."""
        return [record(Scheduled, one) for one in await self.native.schedules(bridge())]

    async def pause_schedule(self, name: str) -> None:
        """Pauses a schedule: it makes no ticks until it is resumed."""
        await self.native.pause_schedule(bridge(), name)

    async def resume_schedule(self, name: str) -> None:
        """Resumes a schedule from its next tick on."""
        await self.native.resume_schedule(bridge(), name)

    async def drop_schedule(self, name: str) -> None:
        """Drops a schedule. Messages that it has enqueued stay."""
        await self.native.drop_schedule(bridge(), name)

    async def fire_schedule(self, name: str) -> int:
        """Enqueues the message of a schedule now, and returns its id."""
        return await self.native.fire_schedule(bridge(), name)


#: The full names that PostgreSQL uses for types, and the short names that codecs use.
_NAMES = {
    "bigint": "int8",
    "integer": "int4",
    "smallint": "int2",
    "double precision": "float8",
    "boolean": "bool",
    "character varying": "varchar",
}


def check_column(native: NativeQueue, codec: Codec[Any]) -> None:
    """Checks that a codec matches a queue's column: the same type, an equivalent one, or a domain.
    Raises :class:`WrongType` otherwise."""
    alike = [{"jsonb", "json"}, {"text", "varchar"}]
    column = _NAMES.get(native.column, native.column)
    if column == codec.column or any(column in both and codec.column in both for both in alike):
        return
    known = {"jsonb", "json", "bytea", "text", "varchar", "int8", "uuid", "int2", "int4", "float8", "bool"}
    if column in known:
        raise WrongType(
            f"queue {native.name!r} has payloads of type {column}, but the Python type is stored as {codec.column}; "
            "open it with a matching type, or with your own codec"
        )
