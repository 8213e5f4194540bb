"""The verbs of a queue, for asyncio."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast

from ._trunkline import Draft as NativeDraft, Queue as NativeQueue, Lease, Message
from .codec import Codec
from .consumer import Consumer
from .draft import Drafted, Options, native
from .enqueued import Enqueued
from .errors import sendable
from .loop import arrival, bridge
from .schedule import Schedule
from .seen import Archived, DeadLetter, Found, Peeked, Stats, record, seen
from .times import Duration, Wait, due_of, seconds, seconds_or_none, whole_number
from .tracing import is_traced

T = TypeVar("T")

#: The argument of verbs that end leases: a message, its lease, or several of either.
Leases: TypeAlias = "Message[Any] | Lease | Iterable[Message[Any] | Lease]"
#: The messages that a verb applies to: one id or several.
Ids = int | Sequence[int]

_PLAIN = Options()


def takes(guarantee: str) -> bool:
    """Returns true if a guarantee deletes messages when they are dequeued."""
    if guarantee not in ("at least once", "at most once"):
        raise ValueError(f"a consumer's guarantee is 'at least once' or 'at most once', not {guarantee!r}; for exactly once, use trunkline.transaction")
    return guarantee == "at most once"


def ids_of(ids: Ids) -> list[int]:
    """Returns one id, or several, as a list."""
    return [ids] if isinstance(ids, int) else list(ids)


def encoded(codec: Codec[T], message: Any) -> bytes | NativeDraft:
    """Returns a message in the form in which the native module enqueues it."""
    if isinstance(message, Drafted):
        draft = cast("Drafted[T]", message)
        return native(codec, draft.payload, draft.options)
    return native(codec, message, _PLAIN) if is_traced() else codec.encode(message)


@dataclass(frozen=True)
class Draft(Drafted[T]):
    """A message with options, for one queue:
    ``await queue.draft(mail).after(minutes=5).enqueue()``."""

    queue: Queue[T] = field(repr=False, compare=False)

    async def enqueue(self) -> Enqueued:
        """Enqueues the message. Returns its id and outcome; with a unique key, the id may be
        another message's."""
        return await self.queue.enqueue(self)

    def __await__(self) -> Generator[Any, None, Enqueued]:
        return self.enqueue().__await__()


class Queue(Generic[T]):
    """A queue of ``T``\\ s, opened by :meth:`Db.queue`. All tasks of a loop can share one.

    If a call is cancelled, no message is lost or duplicated: messages that were dequeued for the
    call return to the queue immediately. The message of a cancelled enqueue may nevertheless be
    stored. During an outage this happens once the database is reachable again, even much later.
    """

    def __init__(self, native: NativeQueue, codec: Codec[T], schema: str) -> None:
        self.native = native
        self.codec = codec
        #: The name of the schema that contains the queue.
        self.schema = schema
        self._decode = codec.decode

    def __repr__(self) -> str:
        return f"Queue({self.name!r})"

    @property
    def name(self) -> str:
        """The queue's name."""
        return self.native.name

    async def enqueue(self, message: T | Drafted[T]) -> Enqueued:
        """Enqueues a payload or a draft. Returns its id after the commit, which is as durable as
        the server makes a commit.

        :class:`Enqueued` is the id, an ``int``, and says whether the message is new.

        Concurrent calls share one row and one commit. Raises :class:`BadPayload` only for the
        call's own payload, and :class:`OutcomeUnknown` if the connection broke before the answer.
        """
        return await self.native.enqueue(bridge(), encoded(self.codec, message))

    async def enqueue_many(self, messages: Iterable[T | Drafted[T]]) -> list[Enqueued]:
        """Enqueues all messages in one transaction, and returns their ids in order. One bad payload
        fails the whole call."""
        codec = self.codec
        return await self.native.enqueue_many(bridge(), [encoded(codec, message) for message in messages])

    async def send_direct(self, message: T | Drafted[T]) -> Enqueued:
        """Sends a message to one consumer that waits in :meth:`Consumer.receive_direct`, inside the
        notification that wakes it. Nothing is stored, so the message is lost if that consumer
        crashes. The message is enqueued instead if no consumer waits, if it takes more than about
        5,900 bytes with its metadata, if it has a delay, a key, a priority, a unique key or
        columns, or if the queue is paused or has limits."""
        return await self.native.send_direct(bridge(), encoded(self.codec, message))

    def draft(self, payload: T) -> Draft[T]:
        """Returns a message to which options can be added: ``.after(minutes=5)``, ``.at(time)``,
        ``.key(k)``, ``.priority(p)``, ``.unique(k, ttl)``, ``.metadata({})``, ``.columns({})``.
        Then call ``.enqueue()``."""
        return Draft(payload, _PLAIN, self)

    async def take(self, n: int) -> list[Message[T]]:
        """Takes up to ``n`` messages, oldest first, at most once: they are deleted when this
        returns. Returns an empty list if none is due."""
        return (await arrival(self.native.take(bridge(), whole_number(n)))).accept(self._decode) or []

    async def lease(self, n: int, for_: Duration | None = None) -> list[Message[T]]:
        """Leases up to ``n`` messages for the queue's lease time, or for ``for_``: more than zero,
        at most 365 days.

        An attempt of each message is counted now, so that a crash counts. End each lease with
        ``ack``, ``archive``, ``retry``, ``bury`` or ``release``. If a lease is not ended, the
        message returns, or becomes a dead letter after its last attempt. A payload that cannot be
        read fails its attempt with that error; the other messages are returned.

        If the event loop is blocked until half of the lease has passed, the messages are released
        without counting an attempt, and the call leases again.
        """
        count, longest = whole_number(n), seconds_or_none(for_)
        while True:
            offer = await arrival(self.native.lease(bridge(), count, longest))
            if (messages := offer.accept(self._decode)) is not None:
                return messages

    def consumer(
        self, wait: Wait = "adaptive", *, prefetch: int = 100, guarantee: Literal["at least once", "at most once"] = "at least once"
    ) -> Consumer[T]:
        """Creates a consumer, which waits for messages:
        ``async for message in queue.consumer()``."""
        return Consumer(self, wait, prefetch, takes=takes(guarantee))

    async def ack(self, messages: Leases) -> None:
        """Acknowledges messages: they are done, and deleted. Raises :class:`LeaseLost` if leases
        were lost; the messages that are not in its ``lost_ids`` are acknowledged."""
        await self.native.ack(bridge(), messages)

    async def archive(self, messages: Leases) -> None:
        """Acknowledges messages and keeps them in the queue's archive. Raises the same errors as
        ``ack``."""
        await self.native.archive(bridge(), messages)

    async def retry(self, messages: Leases, after: Duration = 0, error: str = "") -> None:
        """Returns messages to the queue after a failure: they are due again after a delay, or dead
        letters after their last attempt. Raises the same errors as ``ack``."""
        await self.native.retry(bridge(), messages, seconds(after), sendable(error))

    async def bury(self, messages: Leases, reason: str) -> None:
        """Makes messages dead letters immediately. Raises the same errors as ``ack``."""
        await self.native.bury(bridge(), messages, sendable(reason))

    async def extend(self, messages: Leases, by: Duration) -> None:
        """Makes leases end ``by`` from now: more than zero, at most 365 days. Raises the same
        errors as ``ack``."""
        await self.native.extend(bridge(), messages, seconds(by))

    async def release(self, messages: Leases) -> None:
        """Releases messages: they are due again immediately, and no attempt is counted. Raises the
        same errors as ``ack``."""
        await self.native.release(bridge(), messages)

    async def stats(self) -> Stats:
        """Returns the current counts of the queue."""
        return record(Stats, await self.native.stats(bridge()))

    async def peek(self, n: int) -> list[Peeked[T]]:
        """Returns the first ``n`` messages by due time, without changing them."""
        return [seen(Peeked[T], self.codec, one) for one in await self.native.peek(bridge(), whole_number(n))]

    async def dead_letters(self, after: int = 0, n: int = 100) -> list[DeadLetter[T]]:
        """Returns up to ``n`` dead letters, by id, after the id ``after``."""
        return [seen(DeadLetter[T], self.codec, one) for one in await self.native.dead_letters(bridge(), after, whole_number(n))]

    async def replay(self, ids: Ids | Literal["all"]) -> int:
        """Makes dead letters due again now, with all attempts that the queue allows. ``attempts``
        starts again at zero; ``attempt`` continues. A letter keeps its id, unless another message
        has it by now. Returns their number."""
        return await self.native.replay(bridge(), None if ids == "all" else ids_of(ids))

    async def discard(self, ids: Ids | Literal["all"]) -> int:
        """Deletes dead letters permanently. Returns their number."""
        return await self.native.discard(bridge(), None if ids == "all" else ids_of(ids))

    async def archived(self, after: int = 0, n: int = 100) -> list[Archived[T]]:
        """Returns up to ``n`` archived messages, by id, after the id ``after``."""
        return [seen(Archived[T], self.codec, one) for one in await self.native.archived(bridge(), after, whole_number(n))]

    async def prune(self, age: Duration) -> int:
        """Deletes messages that were archived longer ago than ``age``. Returns their number."""
        return await self.native.prune(bridge(), seconds(age))

    async def purge(self) -> int:
        """Deletes all messages of the queue except dead letters and the archive. Returns their
        number."""
        return await self.native.purge(bridge())

    async def find(self, id: int) -> Found[T] | None:
        """Finds one message by its id, without changing it. Returns ``None`` if it no longer
        exists."""
        found = await self.native.find(bridge(), id)
        return seen(Found[T], self.codec, found[0]) if found else None

    async def cancel(self, ids: Ids) -> list[int]:
        """Deletes waiting and leased messages, whose leases end now. Returns the ids of the deleted
        messages."""
        return await self.native.cancel(bridge(), ids_of(ids))

    async def reschedule(self, ids: Ids, due: Duration | datetime) -> list[int]:
        """Sets waiting messages' due time: a delay or a time; immediately if the delay is 0 or
        the time has passed. Returns the ids of the changed messages."""
        return await self.native.reschedule(bridge(), ids_of(ids), due_of(due))

    async def schedule(self, schedule: Schedule, payload: T) -> bool:
        """Stores a schedule: it enqueues the payload exactly once at every tick, no matter how many
        processes run. Returns true if something changed; does nothing if the same schedule exists.
        Every process with a worker makes ticks, unless the worker only drains."""
        return await self.native.schedule(bridge(), schedule, self.codec.encode(payload))
