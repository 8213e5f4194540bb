"""A database with queues in it, for asyncio."""

from __future__ import annotations

from typing import Any, TypeVar, overload

from . import logs
from ._trunkline import Db as NativeDb, Queue as NativeQueue
from .codec import Codec, codec_of
from .errors import WrongType
from .loop import bridge
from .queue import Queue
from .seen import Description, Scheduled, record
from .settings import Setting, settings

T = TypeVar("T")


class Db:
    """A database with Trunkline in it.

    Cheap to share: all its queues share the same few connections, and every statement is pipelined, so the number of concurrent
    callers does not matter. Made before a fork, it cannot be used in the child; connect there.
    """

    def __init__(self, native: NativeDb) -> None:
        self.native = native

    @classmethod
    async def connect(cls, url: str = "") -> Db:
        """Connects. The string is a URL (``postgres://user@host/database?sslmode=verify-full``) or words
        (``host=/run/postgresql dbname=app``), with libpq's meaning; what it does not say is taken from ``PGHOST`` and the like."""
        logs.begin()
        return cls(await NativeDb.connect(bridge(), url))

    @property
    def schema(self) -> str:
        """The name of the schema that holds the queues."""
        return self.native.schema

    async def migrate(self) -> int:
        """Brings the schema to this library's version, in one transaction. Safe to run again, and from many processes at once. Returns
        how many steps were applied."""
        return await self.native.migrate(bridge())

    async def create_queue(self, name: str, type: Any = Any, **named: Setting) -> None:
        """Creates a queue; does nothing if it exists with the same settings.

        ``type`` decides what its payloads are in Postgres: ``bytes`` are ``bytea``, ``str`` is ``text``, ``int`` is ``int8``,
        ``uuid.UUID`` is ``uuid``, everything else is ``jsonb``. Settings, all of them optional: ``max_attempts`` (10), ``lease`` (30 s),
        ``max_batch`` (1,024), ``priorities`` (1), ``aging`` (a minute), ``uniqueness`` (False), ``partitions`` (0), ``per_key`` (1).
        """
        await self.native.create_queue(bridge(), name, codec_of(type).column, settings(named))

    async def alter_queue(self, name: str, **named: Setting) -> None:
        """Changes settings of a queue; those that are not named stay as they are."""
        await self.native.alter_queue(bridge(), name, settings(named))

    async def drop_queue(self, name: str) -> None:
        """Drops a queue with all that is in it, dead letters and archive included."""
        await self.native.drop_queue(bridge(), name)

    @overload
    async def queue(self, name: str) -> Queue[Any]: ...
    @overload
    async def queue(self, name: str, type: type[T]) -> Queue[T]: ...
    @overload
    async def queue(self, name: str, type: Codec[T]) -> Queue[T]: ...
    async def queue(self, name: str, type: Any = Any) -> Queue[Any]:
        """Opens a queue whose payloads are of a type, or have a codec. Raises :class:`NoQueue`, or :class:`WrongType` where its
        payloads are of another."""
        codec = codec_of(type)
        native = await self.native.queue(bridge(), name)
        check_column(native, codec)
        return Queue(native, codec, self.schema)

    async def list_queues(self) -> list[Description]:
        """All queues, by name."""
        return [record(Description, one) for one in await self.native.list_queues(bridge())]

    async def describe_queue(self, name: str) -> Description:
        """One queue. Raises :class:`NoQueue`."""
        (one,) = await self.native.describe_queue(bridge(), name)
        return record(Description, one)

    async def pause_queue(self, name: str) -> None:
        """Pauses a queue for everybody: nothing is dequeued from it from now on; enqueues go on."""
        await self.native.pause_queue(bridge(), name)

    async def resume_queue(self, name: str) -> None:
        """Resumes a queue that was paused, and wakes its consumers."""
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
        """Sets how much of a queue may be dequeued, by all processes together; what is not named has no limit."""
        of_all, of_keys = (per_second, burst), (key_per_second, key_burst)
        await self.native.limit_queue(bridge(), name, max_leased, of_all, of_keys)

    async def schedules(self) -> list[Scheduled]:
        """All schedules, by name."""
        return [record(Scheduled, one) for one in await self.native.schedules(bridge())]

    async def pause_schedule(self, name: str) -> None:
        """Pauses a schedule: it makes no ticks until it is resumed."""
        await self.native.pause_schedule(bridge(), name)

    async def resume_schedule(self, name: str) -> None:
        """Resumes a schedule from its next tick on."""
        await self.native.resume_schedule(bridge(), name)

    async def drop_schedule(self, name: str) -> None:
        """Drops a schedule. What it has enqueued stays."""
        await self.native.drop_schedule(bridge(), name)

    async def fire_schedule(self, name: str) -> int:
        """Enqueues the message of a schedule now, and returns its id."""
        return await self.native.fire_schedule(bridge(), name)


#: As Postgres writes out the types that codecs name in short.
_NAMES = {
    "bigint": "int8",
    "integer": "int4",
    "smallint": "int2",
    "double precision": "float8",
    "boolean": "bool",
    "character varying": "varchar",
}


def check_column(native: NativeQueue, codec: Codec[Any]) -> None:
    """Whether a codec goes with a queue; a domain over its type, or an equal one, does."""
    alike = [{"jsonb", "json"}, {"text", "varchar"}]
    column = _NAMES.get(native.column, native.column)
    if column == codec.column or any(column in both and codec.column in both for both in alike):
        return
    known = {"jsonb", "json", "bytea", "text", "varchar", "int8", "uuid", "int2", "int4", "float8", "bool"}
    if column in known:
        raise WrongType(
            f"queue {native.name!r} has payloads of type {column}, and the Python type's are {codec.column}; "
            "open it with a matching type, or with a codec of your own"
        )
