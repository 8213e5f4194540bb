"""What a handler knows of its delivery."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .._trunkline import Delivery, Lease
from ..loop import bridge
from ..times import Duration, seconds

_current: ContextVar[Context] = ContextVar("trunkline_context")
_logger = logging.getLogger("trunkline.worker")


@dataclass(frozen=True)
class Running:
    """A message whose handler runs in this process."""

    queue: str
    id: int
    attempt: int
    #: Since its handler was called.
    seconds: float
    #: The last :meth:`Context.progress`: done, and of how much. ``None`` before the first.
    done: float | None
    of: float | None
    note: str


class Context:
    """One delivery of one message. A handler gets it by a parameter that is annotated with it, or by :func:`current`."""

    __slots__ = ("_delivery", "_is_cancelled", "_loop", "_message", "_progress", "_told", "_waiter", "began", "queue")

    def __init__(self, delivery: Delivery, queue: str, loop: asyncio.AbstractEventLoop) -> None:
        #: The name of the queue.
        self.queue = queue
        self._delivery = delivery
        self._loop = loop
        self._message: Any = None
        self._is_cancelled = False
        self._waiter: threading.Event | None = None
        self._told = 0.0
        self.began = time.monotonic()
        self._progress: tuple[float, float, str] | None = None

    def _of(self) -> Any:
        if self._message is None:
            self._message = self._delivery.message(None)
        return self._message

    @property
    def id(self) -> int:
        """The message's id."""
        id: int = self._of().id
        return id

    @property
    def attempt(self) -> int:
        """Deliveries so far, this one included."""
        attempt: int = self._of().attempt
        return attempt

    @property
    def attempts(self) -> int:
        """Attempts that count, this one included: 1 where a handler meets a message for the first time."""
        return self._delivery.attempts

    @property
    def lease(self) -> Lease:
        """The name of this delivery: what SQL and the other verbs take."""
        lease: Lease = self._of().lease
        return lease

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata that was enqueued with it."""
        return self._delivery.metadata

    @property
    def enqueued_at(self) -> datetime:
        """When it was enqueued, by the server's clock."""
        at: datetime = self._of().enqueued_at
        return at

    @property
    def key(self) -> str | None:
        """Its key, where the queue's messages have keys."""
        key: str | None = self._of().key
        return key

    @property
    def is_cancelled(self) -> bool:
        """Whether the message was cancelled, its lease is lost, or the worker gives up on the handler at its end. Whatever the
        handler answers then is discarded. Told within a second; a handler in a thread should look at it now and then."""
        return self._is_cancelled

    def wait_cancelled(self, longest: Duration) -> bool:
        """For a handler in a thread: sleeps until it is cancelled, or the time is up. Returns whether it is cancelled."""
        if self._waiter is None:
            self._waiter = threading.Event()
        return self._is_cancelled or self._waiter.wait(seconds(longest))

    def cancel(self) -> None:
        """Tells the handler that its answer will be discarded."""
        self._is_cancelled = True
        if self._waiter is not None:
            self._waiter.set()

    async def extend(self, by: Duration) -> None:
        """Makes the lease end that long from now. The worker renews leases by itself while a handler runs; this is for code that will
        keep its event loop from doing so."""
        await self._delivery.extend(bridge(), seconds(by))

    async def release(self) -> None:
        """Gives the message back unfinished, without counting an attempt; whatever the handler answers then does not count."""
        await self._delivery.release(bridge())

    async def ends_elsewhere(self) -> None:
        """Says that the handler acknowledges the message itself, in a transaction on a connection of its own, with the SQL function
        ``ack``. Call it before; then the worker leaves the message alone if the handler returns without an error. If that transaction
        is not committed, the message comes back when its lease ends."""
        await self._delivery.ends_elsewhere(bridge())

    def ends_elsewhere_in_thread(self) -> None:
        """As :meth:`ends_elsewhere`, for a handler in a thread."""
        self._delivery.ends_elsewhere(None)

    def progress(self, done: float, of: float = 1.0, note: str = "") -> None:
        """Tells how far the handler is: to :meth:`App.running`, and to the log, once a second at most. It is not stored: what is to be seen
        from other processes, or after a crash, belongs into a table of yours. From any thread."""
        self._progress = done, of, note
        now = time.monotonic()
        if now - self._told >= 1.0 or done >= of:
            self._told = now
            about = {"queue": self.queue, "id": self.id, "attempt": self.attempt, "done": done, "of": of}
            _logger.info("progress of message %d: %g of %g %s", self.id, done, of, note, extra=about)


    def running(self) -> Running:
        """What it does at present."""
        done, of, note = self._progress or (None, None, "")
        return Running(self.queue, self.id, self.attempt, time.monotonic() - self.began, done, of, note)


def current() -> Context:
    """The context of the handler that runs. Raises a ``LookupError`` outside of one."""
    return _current.get()


def enter(context: Context) -> None:
    """Makes it the current one of this task."""
    _current.set(context)
