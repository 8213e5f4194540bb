"""Handlers that still run although the worker has given up on them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from .ending import log

#: The minimum number of handlers, at any concurrency, that may hang.
_LEAST = 16
#: The number of seconds that a cancelled handler gets to end before it counts.
_GRACE = 1.0


class TooManyHang(RuntimeError):
    """Too many handlers still run after their timeouts; the worker ends, so that it can be
    restarted."""


class Hanging:
    """Counts the hanging handlers of a worker. If there are too many, calls ``exhausted``."""

    def __init__(self, concurrency: int, exhausted: Callable[[BaseException], None]) -> None:
        self._count = 0
        self._most, self._exhausted = max(concurrency, _LEAST), exhausted

    def cancel(self, handler: asyncio.Task[None]) -> None:
        """Cancels a handler, and watches it, because it may ignore the cancellation."""
        handler.cancel()
        self.watch(handler)

    def watch(self, handler: asyncio.Future[None]) -> None:
        """Counts a cancelled handler if it still runs after a second, until it ends."""
        handler.get_loop().call_later(_GRACE, self._look, handler)

    def _look(self, handler: asyncio.Future[None]) -> None:
        if not handler.done():
            self._began()
            handler.add_done_callback(self._ended)

    def _began(self) -> None:
        self._count += 1
        if self._count == self._most:
            self._exhausted(TooManyHang(f"{self._count} handlers outlived their timeouts and still run"))
        elif self._count * 2 == self._most:
            log(logging.WARNING, "%d handlers outlived their timeouts and still run; at %d the worker ends", self._count, self._most)

    def _ended(self, _: object) -> None:
        self._count -= 1
