"""The context of a handler, which describes its delivery."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Coroutine
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .._trunkline import Bridge, Delivery, Lease
from ..loop import bridge
from ..times import Duration, seconds

_current: ContextVar[Context] = ContextVar("trunkline_context")
_logger = logging.getLogger("trunkline.worker")


@dataclass(frozen=True)
class Running:
    """A message whose handler is running in this process."""

    queue: str
    id: int
    attempt: int
    #: The time since its handler was called.
    seconds: float
    #: The arguments ``done`` and ``of`` of the last :meth:`Context.progress`; ``None`` before the
    #: first call.
    done: float | None
    of: float | None
    note: str


class Context:
    """A delivery of one message. A handler receives it through a parameter annotated with this
    class, or from :func:`current`."""

    __slots__ = ("_delivery", "_is_cancelled", "_message", "_progress", "_told", "_told_end", "_waiter", "began", "queue")

    def __init__(self, delivery: Delivery, queue: str) -> None:
        #: The name of the queue.
        self.queue = queue
        self._delivery = delivery
        self._message: Any = None
        self._is_cancelled = False
        self._waiter: threading.Event | None = None
        self._told, self._told_end = 0.0, False
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
        """The number of deliveries so far, including this one."""
        attempt: int = self._of().attempt
        return attempt

    @property
    def attempts(self) -> int:
        """The number of counted attempts, including this one: 1 when a handler receives a message
        for the first time."""
        return self._delivery.attempts

    @property
    def lease(self) -> Lease:
        """The name of this delivery, for SQL and the other verbs."""
        lease: Lease = self._of().lease
        return lease

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata that was enqueued with the message."""
        return self._delivery.metadata

    @property
    def enqueued_at(self) -> datetime:
        """The time at which the message was enqueued, by the server's clock."""
        at: datetime = self._of().enqueued_at
        return at

    @property
    def key(self) -> str | None:
        """The message's key, if the queue's messages have keys."""
        key: str | None = self._of().key
        return key

    @property
    def is_cancelled(self) -> bool:
        """True if the message was cancelled, its lease is lost, or the worker is ending and has
        given up on the handler. The handler's result will then be discarded. The value changes
        within a second; a handler in a thread should check it from time to time."""
        return self._is_cancelled

    def wait_cancelled(self, longest: Duration) -> bool:
        """Sleeps until the handler is cancelled, or until ``longest`` has passed. Returns true if
        the handler is cancelled. For handlers in threads."""
        if self._waiter is None:
            self._waiter = threading.Event()
        return self._is_cancelled or self._waiter.wait(seconds(longest))

    def cancel(self) -> None:
        """Marks the handler as cancelled: its result will be discarded."""
        self._is_cancelled = True
        if self._waiter is not None:
            self._waiter.set()

    # The next three methods begin when they are called, and in a thread they fail, instead of
    # returning a coroutine that never runs.

    def extend(self, by: Duration) -> Coroutine[Any, Any, None]:
        """Makes the lease end ``by`` from now. The worker renews leases itself while a handler
        runs, even if the handler blocks the event loop. So only handlers that then call
        :meth:`ends_elsewhere` need this method."""
        return _end_of(self._delivery.extend(_loop("extend"), seconds(by)))

    def extend_in_thread(self, by: Duration) -> None:
        """Does the same as :meth:`extend`, for a handler in a thread."""
        self._delivery.extend(None, seconds(by))

    def release(self) -> Coroutine[Any, Any, None]:
        """Releases the unfinished message, without counting an attempt. The handler's result is
        then ignored."""
        return _end_of(self._delivery.release(_loop("release")))

    def release_in_thread(self) -> None:
        """Does the same as :meth:`release`, for a handler in a thread."""
        self._delivery.release(None)

    def ends_elsewhere(self) -> Coroutine[Any, Any, None]:
        """Declares that the handler acknowledges the message itself, in a transaction on its own
        connection, with the SQL function ``ack``. Call this method before that transaction. If the
        handler then returns without an error, the worker does not acknowledge the message. If the
        transaction is not committed, the message returns when its lease ends. From this call on,
        the worker neither renews the lease nor reports its loss. So call it after the slow part of
        the work, or :meth:`extend` the lease first."""
        return _end_of(self._delivery.ends_elsewhere(_loop("ends_elsewhere")))

    def ends_elsewhere_in_thread(self) -> None:
        """Does the same as :meth:`ends_elsewhere`, for a handler in a thread."""
        self._delivery.ends_elsewhere(None)

    def progress(self, done: float, of: float = 1.0, note: str = "") -> None:
        """Reports the handler's progress to :meth:`App.running`, and to the log at most once a
        second, and once when it reaches ``of``. Progress is not stored: if other processes need it, or it must survive a crash,
        store it in a table of your own. Can be called from any thread."""
        self._progress = done, of, note
        now, is_end = time.monotonic(), done >= of and not self._told_end
        if now - self._told >= 1.0 or is_end:
            self._told, self._told_end = now, self._told_end or is_end
            about = {"queue": self.queue, "id": self.id, "attempt": self.attempt, "done": done, "of": of}
            _logger.info("progress of message %d: %g of %g %s", self.id, done, of, note, extra=about)

    def running(self) -> Running:
        """Returns the handler's current state."""
        done, of, note = self._progress or (None, None, "")
        return Running(self.queue, self.id, self.attempt, time.monotonic() - self.began, done, of, note)


async def _end_of(begun: Awaitable[None]) -> None:
    """Waits for a call that has begun."""
    await begun


def _loop(method: str) -> Bridge:
    """Returns the bridge of the running loop. Raises an error in a thread without a loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(f"there is no event loop in this thread: call Context.{method}_in_thread()") from None
    return bridge()


def current() -> Context:
    """Returns the context of the running handler. Raises a ``LookupError`` outside a handler."""
    return _current.get()


def enter(context: Context) -> None:
    """Makes ``context`` the current context of this task."""
    _current.set(context)
