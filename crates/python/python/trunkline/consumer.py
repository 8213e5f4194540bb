"""A consumer: waits until something is due."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Generic, TypeVar

from ._trunkline import Message
from .errors import TrunklineError
from .loop import arrival, bridge
from .times import Duration, seconds_or_none

if TYPE_CHECKING:
    from .queue import Queue, Wait

T = TypeVar("T")

#: Seconds that a database has, at the end of a consumer, to take back what was leased ahead.
_LONGEST = 5.0


class Consumer(Generic[T]):
    """Waits for messages of one queue. Make one for each task that consumes.

    >>> async with queue.consumer() as messages:
    ...     async for message in messages:
    ...         ...
    ...         await queue.ack(message)

    Iterated over, it leases up to ``prefetch`` messages at a time; what was not iterated to is given back, without counting an attempt, when the consumer
    is closed or forgotten, or is half a lease old. At most once, it takes one message at a time.
    """

    def __init__(self, queue: Queue[T], wait: Wait, prefetch: int, takes: bool) -> None:
        self._queue = queue
        self._native = queue.native.consumer(wait)
        self._prefetch = 1 if takes else max(1, prefetch)
        self._takes = takes
        self._ahead: deque[Message[T]] = deque()
        self._until = 0.0

    async def take(self, n: int, within: Duration | None = None) -> list[Message[T]]:
        """Waits, then takes up to ``n`` messages, at most once; none where none was due ``within`` that time."""
        return await self._next(n, True, within)

    async def lease(self, n: int, within: Duration | None = None) -> list[Message[T]]:
        """Waits, then leases up to ``n`` messages; none where none was due ``within`` that time."""
        return await self._next(n, False, within)

    async def _next(self, n: int, takes: bool, within: Duration | None) -> list[Message[T]]:
        called = self._native.next(bridge(), n, takes, seconds_or_none(within))
        return (await arrival(called)).accept(self._queue.codec.decode)

    def __aiter__(self) -> AsyncIterator[Message[T]]:
        return self

    async def __anext__(self) -> Message[T]:
        while True:
            if self._ahead and monotonic() > self._until:
                self.close()
            if self._ahead:
                return self._ahead.popleft()
            leased = await self._next(self._prefetch, self._takes, None)
            self._until = monotonic() + self._queue.native.lease_seconds / 2
            self._ahead.extend(leased)

    def close(self) -> None:
        """Gives back what was leased ahead. The consumer can be used again."""
        if ahead := self._taken_ahead():
            self._queue.native.release_unheard(ahead)

    async def __aenter__(self) -> Consumer[T]:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ahead = self._taken_ahead()
        if ahead:
            # A program that ends behind this has given back all. What cannot be given back by then comes back when its lease ends.
            release = asyncio.ensure_future(self._queue.release(ahead))
            await asyncio.wait([release], timeout=_LONGEST)
            if release.done():
                with suppress(TrunklineError):
                    release.result()

    def _taken_ahead(self) -> list[Message[T]]:
        """What is to be given back, and is not held any more."""
        ahead = [] if self._takes else list(self._ahead)
        self._ahead.clear()
        return ahead

    def __del__(self) -> None:
        ahead = getattr(self, "_ahead", None)
        if ahead:
            self.close()
