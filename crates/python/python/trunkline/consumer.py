"""A consumer, which waits until messages are due."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from ._trunkline import Message, Offer
from .errors import LeaseLost, NoQueue, TrunklineError
from .loop import arrival, bridge
from .prefetched import Prefetched
from .times import Duration, Wait, seconds_or_none, whole_number

if TYPE_CHECKING:
    from .queue import Queue

T = TypeVar("T")

#: The number of seconds for which the end of a consumer waits until it has given back all messages.
_LONGEST = 5.0


class Consumer(Prefetched[T]):
    """Waits for messages of one queue. Create one for each task that consumes: a task that iterates
    while another task waits for the next message receives a ``RuntimeError``.

    >>> async with queue.consumer() as messages:
    ...     async for message in messages:
    ...         ...
    ...         await queue.ack(message)

    An iteration leases up to ``prefetch`` messages at a time. Messages that the iteration has not
    reached are released without counting an attempt. This happens when the consumer is closed or
    garbage-collected, or when half of their lease has passed, even if the event loop is blocked at
    that time. If decoding the payloads takes that long, the iteration leases fewer messages. The
    lease time of an iteration is the queue's at the time when :meth:`Db.queue` opened it. With the
    guarantee at most once, an iteration takes one message at a time, and several tasks may iterate.
    """

    def __init__(self, queue: Queue[T], wait: Wait, prefetch: int, takes: bool) -> None:
        super().__init__(queue.native, wait, prefetch, takes)
        self._queue = queue

    async def take(self, n: int, within: Duration | None = None) -> list[Message[T]]:
        """Waits, then takes up to ``n`` messages, at most once. Returns an empty list if none was
        due ``within`` that time."""
        return (await self._next(n, True, seconds_or_none(within))).accept(self._queue.codec.decode) or []

    async def lease(self, n: int, within: Duration | None = None) -> list[Message[T]]:
        """Waits, then leases up to ``n`` messages. Returns an empty list if none was due ``within``
        that time. See :meth:`Queue.lease` about a blocked event loop."""
        left = longest = seconds_or_none(within)
        began = monotonic()
        while True:
            offer = await self._next(n, False, left)
            if (messages := offer.accept(self._queue.codec.decode)) is not None:
                return messages
            left = None if longest is None else max(0.0, began + longest - monotonic())

    async def receive_direct(self) -> Message[T]:
        """Waits for one message, delivered at most once. The message may arrive inside a
        notification of :meth:`Queue.send_direct`. Use this method if messages are few and must
        arrive quickly. If the call is cancelled while a message is on its way, the next call
        returns that message. If there is no next call, the message is enqueued when the consumer is
        closed or garbage-collected. The end of an ``async with`` block waits for that."""
        self._is_direct = True
        while True:
            offer = await arrival(self._native.receive_direct(bridge()))
            for message in offer.accept(self._queue.codec.decode) or ():
                return message  # if there is none, the payload could not be read

    async def _next(self, n: int, takes: bool, longest: float | None, lease: float | None = None) -> Offer:
        return await arrival(self._native.next(bridge(), whole_number(n), takes, longest, lease))

    def __aiter__(self) -> AsyncIterator[Message[T]]:
        return self

    async def __anext__(self) -> Message[T]:
        while True:
            if self._process != os.getpid():
                self.close()
            if self._takes:
                if taken := await self.take(1):
                    return taken[0]
                continue  # its payload could not be read
            while self._ahead:
                message = self._ahead.popleft()
                if self._offer is None or self._offer.begin(message):
                    return message
            if self._is_fetching:
                # A task that was cancelled just now ends its wait in this turn of the loop.
                await asyncio.sleep(0)
                if not self._is_fetching:
                    continue
            with self._fetching() as lease:
                offer = await self._next(self._next_count, False, None, lease)
            self._accept(offer, self._queue.codec.decode)

    def close(self) -> None:
        """Releases the prefetched messages, and stops waiting for direct messages. The consumer can
        be used again. This happens in the background: a program that exits afterwards has to use
        ``async with``, which waits for it."""
        self._end_direct()
        if ahead := self._taken_ahead():
            self._queue.native.release_unheard(ahead)

    async def __aenter__(self) -> Consumer[T]:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Waits, so that a program that exits afterwards has released everything. If a message could
        # not be released in time, it returns when its lease ends.
        direct, ahead = self._end_direct(), self._taken_ahead()
        release = asyncio.ensure_future(self._queue.release(ahead)) if ahead else None
        left = None if direct is None else asyncio.ensure_future(direct.close_direct(bridge()))
        if ends := [one for one in (release, left) if one is not None]:
            await asyncio.wait(ends, timeout=_LONGEST)
        if release is not None and release.done():
            try:
                release.result()
            except (LeaseLost, NoQueue):
                pass  # the others are released
            except TrunklineError:
                self._queue.native.release_unheard(ahead)

    def __del__(self) -> None:
        ahead = getattr(self, "_ahead", None)
        if ahead:
            self.close()
