"""The names of :mod:`trunkline` for programs without an event loop. A call blocks only its own
thread; Ctrl-C ends the wait.

>>> from trunkline.sync import Db
>>> db = Db.connect("postgres:///app")
>>> mails = db.queue("mails", Mail)
>>> mails.enqueue(Mail(to="ada@example.org"))

Calls of several threads share rows and commits, as concurrent tasks do. :mod:`trunkline` documents
what the calls guarantee.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from time import monotonic
from types import TracebackType
from typing import Any, Generic, Literal, TypeVar, overload

from . import logs
from ._trunkline import Db as NativeDb, Queue as NativeQueue, Message
from .codec import Codec, codec_of
from .db import check_column
from .draft import Drafted, Options
from .enqueued import Enqueued
from .errors import LeaseLost, NoQueue, TrunklineError, sendable
from .prefetched import Prefetched
from .queue import Ids, Leases, encoded, ids_of, takes
from .schedule import Schedule
from .seen import Archived, DeadLetter, Description, Found, Peeked, Scheduled, Stats, record, seen
from .settings import Setting, limit, settings
from .times import Duration, Wait, due_of, seconds, seconds_or_none, whole_number

__all__ = ["Consumer", "Db", "Draft", "Queue"]

T = TypeVar("T")


@dataclass(frozen=True)
class Draft(Drafted[T]):
    """A message with options, for one queue: ``queue.draft(mail).after(minutes=5).enqueue()``."""

    queue: Queue[T] = field(repr=False, compare=False)

    def enqueue(self) -> Enqueued:
        """Enqueues the message. Returns its id and outcome; with a unique key, the id may be
        another message's."""
        return self.queue.enqueue(self)


class Queue(Generic[T]):
    """A queue of ``T``\\ s: see :class:`trunkline.Queue`. Many threads can share one."""

    def __init__(self, native: NativeQueue, codec: Codec[T], schema: str) -> None:
        self.native = native
        self.codec = codec
        #: The name of the schema that contains the queue.
        self.schema = schema

    def __repr__(self) -> str:
        return f"Queue({self.name!r})"

    @property
    def name(self) -> str:
        """The queue's name."""
        return self.native.name

    def enqueue(self, message: T | Drafted[T]) -> Enqueued:
        """Enqueues a payload or a draft, and returns its id after the commit."""
        return self.native.enqueue(None, encoded(self.codec, message))

    def enqueue_many(self, messages: Iterable[T | Drafted[T]]) -> list[Enqueued]:
        """Enqueues all messages in one transaction, and returns their ids in order."""
        return self.native.enqueue_many(None, [encoded(self.codec, message) for message in messages])

    def send_direct(self, message: T | Drafted[T]) -> Enqueued:
        """Sends a message to one consumer that waits in :meth:`Consumer.receive_direct`, without
        storing it. If no consumer waits, enqueues the message."""
        return self.native.send_direct(None, encoded(self.codec, message))

    def draft(self, payload: T) -> Draft[T]:
        """Returns a message to which options can be added, before ``.enqueue()``."""
        return Draft(payload, Options(), self)

    def take(self, n: int) -> list[Message[T]]:
        """Takes up to ``n`` messages, at most once. Returns an empty list if none is due."""
        return self.native.take(None, whole_number(n)).accept(self.codec.decode) or []

    def lease(self, n: int, for_: Duration | None = None) -> list[Message[T]]:
        """Leases up to ``n`` messages for the queue's lease time, or for ``for_``."""
        count, longest = whole_number(n), seconds_or_none(for_)
        while True:
            if (messages := self.native.lease(None, count, longest).accept(self.codec.decode)) is not None:
                return messages

    def consumer(
        self, wait: Wait = "adaptive", *, prefetch: int = 100, guarantee: Literal["at least once", "at most once"] = "at least once"
    ) -> Consumer[T]:
        """Creates a consumer, which waits for messages: ``for message in queue.consumer()``."""
        return Consumer(self, wait, prefetch, takes=takes(guarantee))

    def ack(self, messages: Leases) -> None:
        """Acknowledges messages: they are done, and deleted."""
        self.native.ack(None, messages)

    def archive(self, messages: Leases) -> None:
        """Acknowledges messages and keeps them in the queue's archive."""
        self.native.archive(None, messages)

    def retry(self, messages: Leases, after: Duration = 0, error: str = "") -> None:
        """Returns messages to the queue after a failure: they are due again after a delay, or dead
        letters after their last attempt."""
        self.native.retry(None, messages, seconds(after), sendable(error))

    def bury(self, messages: Leases, reason: str) -> None:
        """Makes messages dead letters immediately."""
        self.native.bury(None, messages, sendable(reason))

    def extend(self, messages: Leases, by: Duration) -> None:
        """Makes leases end ``by`` from now."""
        self.native.extend(None, messages, seconds(by))

    def release(self, messages: Leases) -> None:
        """Releases messages: they are due again immediately, and no attempt is counted."""
        self.native.release(None, messages)

    def stats(self) -> Stats:
        """Returns the current counts of the queue."""
        return record(Stats, self.native.stats(None))

    def peek(self, n: int) -> list[Peeked[T]]:
        """Returns the first ``n`` messages by due time, without changing them."""
        return [seen(Peeked[T], self.codec, one) for one in self.native.peek(None, whole_number(n))]

    def dead_letters(self, after: int = 0, n: int = 100) -> list[DeadLetter[T]]:
        """Returns up to ``n`` dead letters, by id, after the id ``after``."""
        return [seen(DeadLetter[T], self.codec, one) for one in self.native.dead_letters(None, after, whole_number(n))]

    def replay(self, ids: Ids | Literal["all"]) -> int:
        """Makes dead letters due again. Returns their number."""
        return self.native.replay(None, None if ids == "all" else ids_of(ids))

    def discard(self, ids: Ids | Literal["all"]) -> int:
        """Deletes dead letters permanently. Returns their number."""
        return self.native.discard(None, None if ids == "all" else ids_of(ids))

    def archived(self, after: int = 0, n: int = 100) -> list[Archived[T]]:
        """Returns up to ``n`` archived messages, by id, after the id ``after``."""
        return [seen(Archived[T], self.codec, one) for one in self.native.archived(None, after, whole_number(n))]

    def prune(self, age: Duration) -> int:
        """Deletes messages that were archived longer ago than ``age``. Returns their number."""
        return self.native.prune(None, seconds(age))

    def purge(self) -> int:
        """Deletes all messages of the queue except dead letters and the archive. Returns their
        number."""
        return self.native.purge(None)

    def find(self, id: int) -> Found[T] | None:
        """Finds one message by its id, without changing it. Returns ``None`` if it no longer
        exists."""
        found = self.native.find(None, id)
        return seen(Found[T], self.codec, found[0]) if found else None

    def cancel(self, ids: Ids) -> list[int]:
        """Deletes waiting and leased messages. Returns the ids of the deleted messages."""
        return self.native.cancel(None, ids_of(ids))

    def reschedule(self, ids: Ids, due: Duration | datetime) -> list[int]:
        """Sets waiting messages' due time: a delay or a time; immediately if the delay is 0 or
        the time has passed. Returns the ids of the changed messages."""
        return self.native.reschedule(None, ids_of(ids), due_of(due))

    def schedule(self, schedule: Schedule, payload: T) -> bool:
        """Stores a schedule, which enqueues the payload at every tick. Returns true if something
        changed."""
        return self.native.schedule(None, schedule, self.codec.encode(payload))


class Consumer(Prefetched[T]):
    """Waits for messages of one queue: see :class:`trunkline.Consumer`. Each thread that consumes
    needs its own."""

    def __init__(self, queue: Queue[T], wait: Wait, prefetch: int, takes: bool) -> None:
        super().__init__(queue.native, wait, prefetch, takes)
        self._queue = queue

    def take(self, n: int, within: Duration | None = None) -> list[Message[T]]:
        """Waits, then takes up to ``n`` messages, at most once. Returns an empty list if none was
        due ``within`` that time."""
        return self._native.next(None, whole_number(n), True, seconds_or_none(within)).accept(self._queue.codec.decode) or []

    def receive_direct(self) -> Message[T]:
        """Waits for one message, delivered at most once, which may arrive inside a notification of
        :meth:`Queue.send_direct`."""
        self._is_direct = True
        while True:
            for message in self._native.receive_direct(None).accept(self._queue.codec.decode) or ():
                return message  # if there is none, the payload could not be read

    def lease(self, n: int, within: Duration | None = None) -> list[Message[T]]:
        """Waits, then leases up to ``n`` messages. Returns an empty list if none was due ``within``
        that time."""
        left = longest = seconds_or_none(within)
        began = monotonic()
        while True:
            offer = self._native.next(None, whole_number(n), False, left)
            if (messages := offer.accept(self._queue.codec.decode)) is not None:
                return messages
            left = None if longest is None else max(0.0, began + longest - monotonic())

    def __iter__(self) -> Iterator[Message[T]]:
        return self

    def __next__(self) -> Message[T]:
        while True:
            if self._process != os.getpid():
                self.close()
            if self._takes:
                if taken := self.take(1):
                    return taken[0]
                continue  # its payload could not be read
            while self._ahead:
                message = self._ahead[0]
                begins = self._offer is None or self._offer.begin(message)
                # A signal handler may raise after any call, but not between these lines. So the
                # message is either in the list or with the caller.
                del self._ahead[0]
                if begins:
                    return message
            with self._fetching() as lease:
                offer = self._native.next(None, self._next_count, False, None, lease)
            self._accept(offer, self._queue.codec.decode)

    def close(self) -> None:
        """Releases the prefetched messages, stops waiting for direct messages, and waits until that
        is done. The consumer can be used again."""
        direct = self._end_direct()
        if ahead := self._taken_ahead():
            try:
                self._queue.release(ahead)
            except (LeaseLost, NoQueue):
                pass  # the others are released
            except BaseException as error:  # an interrupt, too
                self._queue.native.release_unheard(ahead)  # tries again in the background
                if not isinstance(error, TrunklineError):
                    raise
        if direct is not None:
            direct.close_direct(None)

    def __enter__(self) -> Consumer[T]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_ahead", None) and (ahead := self._taken_ahead()):
            self._queue.native.release_unheard(ahead)


class Db:
    """A database with Trunkline in it: see :class:`trunkline.Db`. Many threads can share one."""

    def __init__(self, native: NativeDb) -> None:
        self.native = native

    @classmethod
    def connect(cls, url: str = "") -> Db:
        """Connects to a database; ``url`` has the same meaning as in libpq."""
        logs.begin()
        return cls(NativeDb.connect(None, url))

    @property
    def schema(self) -> str:
        """The name of the schema that contains the queues."""
        return self.native.schema

    def migrate(self) -> int:
        """Migrates the schema to this library's version. Returns the number of applied steps."""
        return self.native.migrate(None)

    def create_queue(self, name: str, type: Any = Any, **named: Setting) -> None:
        """Creates a queue; does nothing if it exists with the same settings. See
        :meth:`trunkline.Db.create_queue`."""
        self.native.create_queue(None, name, codec_of(type).column, settings(named))

    def alter_queue(self, name: str, **named: Setting) -> None:
        """Changes settings of a queue. Settings that are not named keep their values. Running
        workers keep ``lease`` and ``per_key``, and open queues ``max_batch``: restart programs."""
        self.native.alter_queue(None, name, settings(named))

    def drop_queue(self, name: str) -> None:
        """Drops a queue with everything in it, including dead letters and archive."""
        self.native.drop_queue(None, name)

    @overload
    def queue(self, name: str) -> Queue[Any]: ...
    @overload
    def queue(self, name: str, type: type[T]) -> Queue[T]: ...
    @overload
    def queue(self, name: str, type: Codec[T]) -> Queue[T]: ...
    @overload
    def queue(self, name: str, type: object) -> Queue[Any]: ...
    def queue(self, name: str, type: Any = Any) -> Queue[Any]:
        """Opens a queue whose payloads have the given type or codec."""
        codec = codec_of(type)
        native = self.native.queue(None, name)
        check_column(native, codec)
        return Queue(native, codec, self.schema)

    def list_queues(self) -> list[Description]:
        """Returns the descriptions of all queues, sorted by name."""
        return [record(Description, one) for one in self.native.list_queues(None)]

    def describe_queue(self, name: str) -> Description:
        """Returns the description of one queue."""
        (one,) = self.native.describe_queue(None, name)
        return record(Description, one)

    def pause_queue(self, name: str) -> None:
        """Pauses a queue for all consumers."""
        self.native.pause_queue(None, name)

    def resume_queue(self, name: str) -> None:
        """Resumes a paused queue, and wakes its consumers."""
        self.native.resume_queue(None, name)

    def limit_queue(
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
        self.native.limit_queue(None, name, limit("max_leased", max_leased), of_all, of_keys)

    def schedules(self) -> list[Scheduled]:
        """Returns all schedules, sorted by name."""
        return [record(Scheduled, one) for one in self.native.schedules(None)]

    def pause_schedule(self, name: str) -> None:
        """Pauses a schedule: it makes no ticks until it is resumed."""
        self.native.pause_schedule(None, name)

    def resume_schedule(self, name: str) -> None:
        """Resumes a schedule from its next tick on."""
        self.native.resume_schedule(None, name)

    def drop_schedule(self, name: str) -> None:
        """Drops a schedule. Messages that it has enqueued stay."""
        self.native.drop_schedule(None, name)

    def fire_schedule(self, name: str) -> int:
        """Enqueues the message of a schedule now, and returns its id."""
        return self.native.fire_schedule(None, name)
