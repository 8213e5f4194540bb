"""The verbs on an asynchronous connection: the same as those of `SyncQueue`, except for `await`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from trunkline import Enqueued
from trunkline.draft import Drafted
from trunkline.errors import sendable
from trunkline.times import Duration, bounded
from trunkline.transaction import calls
from trunkline.transaction.calls import Call, Value
from trunkline.transaction.connection import Rows, RunAsync
from trunkline.transaction.delivered import delivered
from trunkline.transaction.deliveries import Deliveries, listed
from trunkline.transaction.drafts import PLAIN, calls_of, in_order, outcome, written
from trunkline.transaction.message import Message
from trunkline.transaction.payload_text import PayloadText

T = TypeVar("T")


@dataclass(frozen=True)
class AsyncDraft(Drafted[T]):
    """A message with options, for one queue in your transaction:
    `await queue.draft(mail).after(minutes=5).enqueue()`."""

    queue: AsyncQueue[T] = field(repr=False, compare=False)

    async def enqueue(self) -> Enqueued:
        """Enqueues the message, and returns its id and outcome.

        With a unique key, the id may be another message's. Waits for the end of another transaction
        that has claimed the key.
        """
        return await self.queue.enqueue(self)


class AsyncQueue(Generic[T]):
    """A queue in your transaction, on an asynchronous connection.

    No other session sees its changes before your commit, and a rollback undoes them. It neither
    begins nor ends a transaction. If a call fails in the database, your transaction is aborted:
    roll back. Created by `trunkline.transaction.queue`.
    """

    def __init__(self, connection: object, run: RunAsync, schema: str, name: str, payloads: PayloadText[T]) -> None:
        self._connection = connection
        self._run_call = run
        self._schema = calls.identifier(schema)
        self._payloads = payloads
        self.name = name

    async def _run(self, call: Call) -> Rows:
        return await self._run_call(self._connection, call)

    def draft(self, payload: T) -> AsyncDraft[T]:
        """Returns a message to which options can be added: `.after(minutes=5)`, `.at(time)`,
        `.key(k)`, `.priority(p)`, `.unique(k, ttl)`, `.metadata({})`, `.columns({})`. Then call
        `.enqueue()`. A delay counts from the call and not from the commit."""
        return AsyncDraft(payload, PLAIN, self)

    async def enqueue(self, message: T | Drafted[T]) -> Enqueued:
        """Enqueues a payload or a draft, and returns its id. Consumers see the message after your
        commit, which wakes them if they are waiting. Raises `BadPayload` before anything is sent if
        the payload cannot be written."""
        call = calls.enqueue(self._schema, self.name, written(message, self._payloads))
        return outcome((await self._run(call))[0])

    async def enqueue_many(self, messages: Iterable[T | Drafted[T]]) -> list[Enqueued]:
        """Enqueues messages together, up to the queue's `max_batch` in a row, and returns their ids
        in order.

        Runs one statement, or one for each different delay, time, priority or rule of uniqueness
        among the drafts.
        """
        made = calls_of(self._schema, self.name, messages, self._payloads)
        outcomes = [[outcome(row) for row in await self._run(call)] for _, call in made]
        return in_order([places for places, _ in made], outcomes)

    async def take(self, n: int = 1) -> list[Message[T]]:
        """Takes up to n messages that are due, oldest first. Effects in your transaction happen
        exactly once.

        A rollback immediately brings the messages back, without counting an attempt: see `charge`.
        If the call splits a row, the rest of the row is hidden from other sessions until your
        commit. Raises `BadPayload`, which names the message, if a payload cannot be read. Raises
        `RuntimeError` outside of a transaction, where the messages would be deleted for good.
        """
        return delivered(await self._run(calls.take(self._schema, self.name, n, self._payloads.column)), self._payloads).all()

    async def lease(self, n: int = 1, for_: Duration | None = None) -> list[Message[T]]:
        """Leases up to n messages that are due, oldest first, for the queue's lease time, or for
        `for_`: at most 365 days.

        Commit immediately: before your commit no other session sees the lease, nor the rest of a
        row that the call split. A payload that cannot be read fails its attempt with that error;
        the other messages are returned.
        """
        read = delivered(await self._run(calls.lease(self._schema, self.name, n, None if for_ is None else bounded(for_), self._payloads.column)), self._payloads)
        for lease, why in read.unreadable:
            await self.retry(lease, error=f"the payload cannot be read: {why}")
        return read.messages

    async def ack(self, messages: Deliveries) -> None:
        """Acknowledges messages that were leased here or by the library. The acknowledgement and
        your effects commit together.

        Raises `LeaseLost` if one of the leases was lost; then roll back, and none of your effects
        remain.
        """
        await self._end("ack", messages)

    async def archive(self, messages: Deliveries) -> None:
        """Acknowledges messages and keeps them in the queue's archive. Raises the same errors as
        `ack`."""
        await self._end("archive", messages)

    async def retry(self, messages: Deliveries, after: Duration = 0, error: str = "") -> None:
        """Returns messages to the queue after a failure. They are due again after a delay of at
        most 365 days, or dead letters after their last attempt. Raises the same errors as `ack`."""
        await self._end("retry", messages, delay=bounded(after), error=sendable(error))

    async def bury(self, messages: Deliveries, reason: str) -> None:
        """Makes messages dead letters immediately. Raises the same errors as `ack`."""
        await self._end("bury", messages, reason=sendable(reason))

    async def extend(self, messages: Deliveries, by: Duration) -> None:
        """Extends leases: they end `by` from now, which is more than zero and at most 365 days.
        Raises the same errors as `ack`."""
        await self._end("extend", messages, lease=bounded(by))

    async def release(self, messages: Deliveries) -> None:
        """Releases messages: they are due again immediately, and no attempt is counted. Raises the
        same errors as `ack`."""
        await self._end("release", messages)

    async def charge(self, messages: Deliveries, after: Duration = 0, error: str = "") -> None:
        """Counts an attempt for messages whose `take` was rolled back, so that a message that
        always fails becomes a dead letter.

        Call it after the rollback. The messages are due again after the delay. Raises `LeaseLost`
        if another consumer has one of them.
        """
        await self._end("charge", messages, delay=bounded(after), error=sendable(error))

    async def _end(self, verb: str, messages: Deliveries, **options: Value) -> None:
        deliveries = listed(messages)
        if deliveries:
            await self._run(calls.end(self._schema, verb, self.name, deliveries, **options))
