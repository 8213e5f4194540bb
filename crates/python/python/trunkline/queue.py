"""A queue: the verbs, for asyncio."""

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
from .times import Duration, due_of, seconds, seconds_or_none
from .tracing import is_traced

T = TypeVar("T")

#: What ends a lease takes: a message, its lease, or several of either.
Leases: TypeAlias = "Message[Any] | Lease | Iterable[Message[Any] | Lease]"
#: Which messages are meant: an id, several, or (where that is said) all.
Ids = int | Sequence[int]
#: How a consumer waits: by polls and notifications as traffic comes and goes, by notifications, or by polls (a number of seconds apart).
Wait = Literal["adaptive", "notify", "poll"] | float

_PLAIN = Options()


def takes(guarantee: str) -> bool:
    """Whether messages are gone when they come."""
    if guarantee not in ("at least once", "at most once"):
        raise ValueError(f"a consumer's guarantee is 'at least once' or 'at most once', not {guarantee!r}; exactly once: trunkline.transaction")
    return guarantee == "at most once"


def ids_of(ids: Ids) -> list[int]:
    """One id, or several."""
    return [ids] if isinstance(ids, int) else list(ids)


def encoded(codec: Codec[T], message: Any) -> bytes | NativeDraft:
    """A message as it is enqueued."""
    if isinstance(message, Drafted):
        draft = cast("Drafted[T]", message)
        return native(codec, draft.payload, draft.options)
    return native(codec, message, _PLAIN) if is_traced() else codec.encode(message)


@dataclass(frozen=True)
class Draft(Drafted[T]):
    """A message with options, of one queue: ``await queue.draft(mail).after(minutes=5).enqueue()``."""

    queue: Queue[T] = field(repr=False, compare=False)

    async def enqueue(self) -> Enqueued:
        """Enqueues it, and returns the id of the message that is there, and whether it is new: with a unique key it may be another's."""
        return await self.queue.enqueue(self)

    def __await__(self) -> Generator[Any, None, Enqueued]:
        return self.enqueue().__await__()


class Queue(Generic[T]):
    """A queue of ``T``\\ s: the handle for everything. Made by :meth:`Db.queue`; use one for all tasks of a loop.

    A call that is cancelled loses nothing and doubles nothing: messages that were dequeued for it go back at once. An enqueue that is
    cancelled may be in the queue all the same.
    """

    def __init__(self, native: NativeQueue, codec: Codec[T], schema: str) -> None:
        self.native = native
        self.codec = codec
        #: The name of the schema that holds it.
        self.schema = schema
        self._decode = codec.decode

    def __repr__(self) -> str:
        return f"Queue({self.name!r})"

    @property
    def name(self) -> str:
        """The queue's name."""
        return self.native.name

    async def enqueue(self, message: T | Drafted[T]) -> Enqueued:
        """Enqueues a payload or a draft, and returns its id once it is committed, as durable as the server makes a commit.

        :class:`Enqueued` is the id, an ``int``, and says whether the message is new.

        Concurrent calls share one row and one commit. Raises :class:`BadPayload` for its own payload only, and
        :class:`OutcomeUnknown` where the connection broke before the answer.
        """
        return await self.native.enqueue(bridge(), encoded(self.codec, message))

    async def enqueue_many(self, messages: Iterable[T | Drafted[T]]) -> list[Enqueued]:
        """Enqueues all messages in one transaction, and returns their ids in their order; one bad payload fails the whole call."""
        codec = self.codec
        return await self.native.enqueue_many(bridge(), [encoded(codec, message) for message in messages])

    def draft(self, payload: T) -> Draft[T]:
        """A message with options: ``.after(minutes=5)``, ``.at(time)``, ``.key(k)``, ``.priority(p)``, ``.unique(k, ttl)``,
        ``.metadata({})``, and then ``.enqueue()``."""
        return Draft(payload, _PLAIN, self)

    async def take(self, n: int) -> list[Message[T]]:
        """Takes up to ``n`` messages, oldest first, at most once: they are gone when this returns. None where none is due."""
        return (await arrival(self.native.take(bridge(), n))).accept(self._decode)

    async def lease(self, n: int, for_: Duration | None = None) -> list[Message[T]]:
        """Leases up to ``n`` messages for the queue's lease time, or for ``for_``: more than zero, at most 365 days.

        An attempt of each is counted now, so that a crash counts. End each lease by ``ack``, ``archive``, ``retry``, ``bury`` or
        ``release``; what is not ended comes back, and after its last attempt is a dead letter. A payload that cannot be read fails its
        attempt with that error; the others are returned.
        """
        return (await arrival(self.native.lease(bridge(), n, seconds_or_none(for_)))).accept(self._decode)

    def consumer(
        self, wait: Wait = "adaptive", *, prefetch: int = 100, guarantee: Literal["at least once", "at most once"] = "at least once"
    ) -> Consumer[T]:
        """A consumer that waits for messages: ``async for message in queue.consumer()``."""
        return Consumer(self, wait, prefetch, takes=takes(guarantee))

    async def ack(self, messages: Leases) -> None:
        """Acknowledges messages: they are done and gone. Raises :class:`LeaseLost` for its ``lost_ids``; the others are acknowledged."""
        await self.native.ack(bridge(), messages)

    async def archive(self, messages: Leases) -> None:
        """Acknowledges messages and keeps them in the queue's archive. Raises as ``ack``."""
        await self.native.archive(bridge(), messages)

    async def retry(self, messages: Leases, after: Duration = 0, error: str = "") -> None:
        """Gives messages back after a failure: due again after a delay, or dead letters after their last attempt. Raises as ``ack``."""
        await self.native.retry(bridge(), messages, seconds(after), sendable(error))

    async def bury(self, messages: Leases, reason: str) -> None:
        """Makes messages dead letters at once. Raises as ``ack``."""
        await self.native.bury(bridge(), messages, sendable(reason))

    async def extend(self, messages: Leases, by: Duration) -> None:
        """Makes leases end that long from now; more than zero, at most 365 days. Raises as ``ack``."""
        await self.native.extend(bridge(), messages, seconds(by))

    async def release(self, messages: Leases) -> None:
        """Gives messages back unharmed: due again at once, without counting an attempt. Raises as ``ack``."""
        await self.native.release(bridge(), messages)

    async def stats(self) -> Stats:
        """The counts of the queue now."""
        return record(Stats, await self.native.stats(bridge()))

    async def peek(self, n: int) -> list[Peeked[T]]:
        """The first ``n`` messages in the order of their due times, without touching them."""
        return [seen(Peeked[T], self.codec, one) for one in await self.native.peek(bridge(), n)]

    async def dead_letters(self, after: int = 0, n: int = 100) -> list[DeadLetter[T]]:
        """A page of up to ``n`` dead letters, by id, after the id ``after``."""
        return [seen(DeadLetter[T], self.codec, one) for one in await self.native.dead_letters(bridge(), after, n)]

    async def replay(self, ids: Ids | Literal["all"]) -> int:
        """Makes dead letters due again, at once, under the same ids and with attempts forgiven. Returns how many."""
        return await self.native.replay(bridge(), None if ids == "all" else ids_of(ids))

    async def discard(self, ids: Ids | Literal["all"]) -> int:
        """Deletes dead letters for good. Returns how many."""
        return await self.native.discard(bridge(), None if ids == "all" else ids_of(ids))

    async def archived(self, after: int = 0, n: int = 100) -> list[Archived[T]]:
        """A page of up to ``n`` archived messages, by id, after the id ``after``."""
        return [seen(Archived[T], self.codec, one) for one in await self.native.archived(bridge(), after, n)]

    async def prune(self, age: Duration) -> int:
        """Deletes messages that were archived longer ago than ``age``. Returns how many."""
        return await self.native.prune(bridge(), seconds(age))

    async def purge(self) -> int:
        """Empties the queue; dead letters and the archive stay. Returns how many messages."""
        return await self.native.purge(bridge())

    async def find(self, id: int) -> Found[T] | None:
        """Finds one message by its id, without touching it; ``None`` where there is none any more."""
        found = await self.native.find(bridge(), id)
        return seen(Found[T], self.codec, found[0]) if found else None

    async def cancel(self, ids: Ids) -> list[int]:
        """Deletes messages that wait or are leased. Returns the ids that are gone; the lease of a leased one ends now."""
        return await self.native.cancel(bridge(), ids_of(ids))

    async def reschedule(self, ids: Ids, due: Duration | datetime) -> list[int]:
        """Makes messages that wait due after a delay, or at a time; at once for 0, or if the time has passed. Returns the ids of the changed
        messages."""
        return await self.native.reschedule(bridge(), ids_of(ids), due_of(due))

    async def schedule(self, schedule: Schedule, payload: T) -> bool:
        """Enqueues the payload at every tick of the schedule, once, however many processes there are. Does nothing where it is the
        same already; returns whether something changed. Ticks are made by every process with a worker."""
        return await self.native.schedule(bridge(), schedule, self.codec.encode(payload))
