"""The verbs on a connection that awaits: those of `SyncQueue`, a word apart."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from trunkline.transaction import calls
from trunkline.transaction.calls import Call, Delay, Delivery, Options
from trunkline.transaction.connection import Rows, RunAsync
from trunkline.transaction.deliveries import listed
from trunkline.transaction.message import Enqueued, Message, messages
from trunkline.transaction.payload_text import PayloadText

T = TypeVar("T")


class AsyncQueue(Generic[T]):
    """A queue in your transaction, on a connection that awaits.

    Nothing that it does is seen by others before your commit, and a rollback undoes it. It neither begins nor ends a transaction. What
    the database refuses has aborted your transaction: roll back. Made by `trunkline.transaction.queue`.
    """

    def __init__(self, connection: object, run: RunAsync, schema: str, name: str, payloads: PayloadText[T]) -> None:
        self._connection = connection
        self._run_call = run
        self._schema = calls.identifier(schema)
        self._payloads = payloads
        self.name = name

    async def _run(self, call: Call) -> Rows:
        return await self._run_call(self._connection, call)

    async def enqueue(
        self,
        payload: T,
        *,
        after: Delay | None = None,
        at: datetime.datetime | None = None,
        metadata: Mapping[str, str] | None = None,
        priority: int = 0,
        key: str | None = None,
        unique: str | None = None,
        within: Delay | None = None,
        replaces: bool = False,
    ) -> int:
        """Enqueues a message, which consumers see with your commit, and returns its id. Consumers that wait are woken at the commit.

        after: how long until it is due, from now on and not from the commit: a `timedelta` or seconds, at most 36,500 days. at: the time
        when it is due, with a time zone; at once where that has passed. metadata: names and texts beside the payload, at most 16,384 bytes.
        priority: from 0, the lowest, in a queue with priorities. key: in a queue with keys, 1 to 1,024 bytes. unique, within,
        replace: as of `enqueue_unique`; where another message has the key, the id is that one's.
        """
        options = Options(after, at, priority, within, replaces)
        call = calls.enqueue(self._schema, self.name, self._payloads.write(payload), metadata, key, unique, options)
        id: int = (await self._run(call))[0][0]
        return id

    async def enqueue_many(
        self,
        payloads: Iterable[T],
        *,
        after: Delay | None = None,
        at: datetime.datetime | None = None,
        metadata: Sequence[Mapping[str, str] | None] | None = None,
        priority: int = 0,
        keys: Sequence[str] | None = None,
        unique: Sequence[str | None] | None = None,
        within: Delay | None = None,
        replaces: bool = False,
    ) -> list[int]:
        """Enqueues messages together, up to the queue's `max_batch` in a row, and returns their ids in order: one statement.

        metadata, keys, unique: one for each payload. The rest is of all of them; see `enqueue`.
        """
        written = [self._payloads.write(payload) for payload in payloads]
        options = Options(after, at, priority, within, replaces)
        call = calls.enqueue_many(self._schema, self.name, written, metadata, keys, unique, options)
        return [id for (id,) in await self._run(call)]

    async def enqueue_unique(
        self,
        payload: T,
        unique: str,
        *,
        within: Delay | None = None,
        replaces: bool = False,
        after: Delay | None = None,
        at: datetime.datetime | None = None,
        metadata: Mapping[str, str] | None = None,
        priority: int = 0,
    ) -> Enqueued:
        """Enqueues a message unless another has its unique key, in a queue with uniqueness, and says what became of it.

        unique: 1 to 1,024 bytes. within: for how long no other gets the key, whatever becomes of this message; none is until it has
        ended. replaces: whether one that waits is replaced by this. Waits for the end of another transaction that has claimed the key.
        """
        options = Options(after, at, priority, within, replaces)
        call = calls.enqueue_unique(self._schema, self.name, self._payloads.write(payload), unique, metadata, options)
        id, outcome = (await self._run(call))[0]
        return Enqueued(id, outcome)

    async def take(self, n: int = 1) -> list[Message[T]]:
        """Takes up to n messages that are due, oldest first: exactly once for effects in your transaction.

        A rollback brings them back at once, without an attempt charged: see `charge`. The rest of a row that is cut is hidden from
        others until your commit.
        """
        return messages(await self._run(calls.take(self._schema, self.name, n)), self._payloads)

    async def lease(self, n: int = 1, lease: Delay | None = None) -> list[Message[T]]:
        """Leases up to n messages that are due, oldest first. Commit at once: before that nobody sees the lease, nor the rest of a row.

        lease: more than zero, at most 365 days; none is the queue's.
        """
        return messages(await self._run(calls.lease(self._schema, self.name, n, lease)), self._payloads)

    async def ack(self, messages: Delivery | Iterable[Delivery]) -> None:
        """Acknowledges messages that are leased: their end and your effects commit together.

        Errs with `LeaseLost` where one is not leased any more; then roll back, and none of your effects remain.
        """
        await self._end("ack", messages)

    async def archive(self, messages: Delivery | Iterable[Delivery]) -> None:
        """Acknowledges messages and keeps them in the queue's archive. Errs with `LeaseLost`, as `ack`."""
        await self._end("archive", messages)

    async def retry(self, messages: Delivery | Iterable[Delivery], *, after: Delay = 0, error: str = "") -> None:
        """Gives messages back after a failure: due again after a delay of at most 365 days, dead letters after their last attempt.

        Errs with `LeaseLost`, as `ack`.
        """
        await self._end("retry", messages, delay=calls.seconds(after), error=error)

    async def bury(self, messages: Delivery | Iterable[Delivery], reason: str = "") -> None:
        """Makes messages dead letters at once, however many attempts are left. Errs with `LeaseLost`, as `ack`."""
        await self._end("bury", messages, reason=reason)

    async def release(self, messages: Delivery | Iterable[Delivery]) -> None:
        """Gives messages back: due at once, the attempt not charged. Errs with `LeaseLost`, as `ack`."""
        await self._end("release", messages)

    async def extend(self, messages: Delivery | Iterable[Delivery], lease: Delay) -> None:
        """Makes leases end that long from now, at most 365 days. Errs with `LeaseLost`, as `ack`."""
        await self._end("extend", messages, lease=calls.seconds(lease))

    async def charge(self, messages: Delivery | Iterable[Delivery], *, after: Delay = 0, error: str = "") -> None:
        """After a rollback, charges an attempt for messages that were taken in it, so that one which always fails becomes a dead letter.

        They are due again after the delay. Errs with `LeaseLost` where somebody else has one.
        """
        await self._end("charge", messages, delay=calls.seconds(after), error=error)

    async def _end(self, verb: str, messages: Delivery | Iterable[Delivery], **options: float | str) -> None:
        deliveries = listed(messages)
        if deliveries:
            await self._run(calls.end(self._schema, verb, self.name, deliveries, **options))
