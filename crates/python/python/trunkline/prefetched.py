"""Parts that consumers with and without an event loop share: the native consumer, and the messages
that an iteration has leased ahead."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Generic, TypeVar

from ._trunkline import Consumer as NativeConsumer, Lease, Message, Offer, Queue
from .times import Wait, wait_of

T = TypeVar("T")


class Prefetched(Generic[T]):
    """A native consumer, and its prefetched messages."""

    def __init__(self, native_queue: Queue, wait: Wait, prefetch: int, takes: bool) -> None:
        self._native_queue = native_queue
        self._wait = wait_of(wait)
        self._native = native_queue.consumer(self._wait)
        #: True if the native consumer may wait for direct messages.
        self._is_direct = False
        self._prefetch = max(1, prefetch)
        #: The number of messages that the iteration requests next, at most `_prefetch`.
        self._next_count = self._prefetch
        #: True if the iteration takes messages, one at a time. It prefetches none.
        self._takes = takes
        self._ahead: deque[Message[T]] = deque()
        #: The offer that contained the prefetched messages.
        self._offer: Offer | None = None
        #: True while the iteration waits for its next messages.
        self._is_fetching = False
        self._process = os.getpid()

    @contextmanager
    def _fetching(self) -> Generator[float, None, None]:
        """Returns a context for the wait for the iteration's next messages, with their lease time.
        Raises an error if another task or thread waits: this object keeps one offer, so the
        messages of the other offer could not begin."""
        if self._is_fetching:
            raise RuntimeError("another task or thread waits for the next message of this consumer: create one consumer for each of them")
        self._is_fetching = True
        try:
            # The queue's own lease time may be shorter by now, so the call names the time that this
            # consumer counts on.
            yield self._native_queue.lease_seconds
        finally:
            self._is_fetching = False

    def _accept(self, offer: Offer, decode: Callable[[bytes], T]) -> None:
        """Keeps the iteration's next messages. If they were released because their decoding took too
        long, requests half as many next, and then one more each time."""
        self._offer = offer
        was_late = not len(offer)  # no payload was decoded before they were released
        messages = offer.accept(decode, True)
        if messages is not None:
            self._next_count = min(self._prefetch, self._next_count + 1)
            self._ahead.extend(messages)
        elif not was_late:
            self._next_count = max(1, self._next_count // 2)

    def _end_direct(self) -> NativeConsumer | None:
        """Replaces the native consumer if it may wait for direct messages, and returns it. When it
        is closed or dropped, it leaves their list, and enqueues a message that is on its way."""
        if not self._is_direct or self._process != os.getpid():
            return None
        self._is_direct = False
        before, self._native = self._native, self._native_queue.consumer(self._wait)
        return before

    def _taken_ahead(self) -> list[Lease]:
        """Removes the prefetched messages, and returns the leases that must be released. In a fork,
        these are none: its copies belong to its parent."""
        ahead = self._offer.rest(self._ahead) if self._offer is not None and self._process == os.getpid() else []
        self._ahead.clear()
        return ahead
