"""Handles that an application opens once in each process. All event loops and threads share
them."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


class Opening(Generic[T]):
    """An opening in progress. It runs in its own thread, so that neither a cancelled caller nor the
    end of an event loop stops it for other callers."""

    def __init__(self) -> None:
        self._future: Future[T] = Future()
        # One event per event loop, so that many callers need only one wake-up.
        self._events: dict[asyncio.AbstractEventLoop, asyncio.Event] = {}

    def begin(self, open: Callable[[], T], failed: Callable[[], object]) -> None:
        """Starts the opening. ``failed`` is called before the callers receive the error, so that
        the next call opens again."""

        def run() -> None:
            try:
                opened = open()
            except BaseException as error:
                failed()
                self._future.set_exception(error)
            else:
                self._future.set_result(opened)

        try:
            threading.Thread(target=run, name="trunkline-open", daemon=True).start()
        except BaseException:  # no more threads, or the interpreter is exiting
            failed()
            self._future.set_exception(RuntimeError("no thread could be started to connect to the database"))
            raise

    async def arrival(self) -> T:
        """Waits for the opened handle, in an event loop."""
        if not self._future.done():
            loop = asyncio.get_running_loop()
            event = self._events.get(loop)
            if event is None:
                event = self._events[loop] = asyncio.Event()
                self._future.add_done_callback(_waker(loop, event))
            await event.wait()
        return self.result()

    def result(self) -> T:
        """Waits for the opened handle, in a thread."""
        error = self._future.exception()
        if error is not None:
            raise error.with_traceback(None)  # otherwise it would collect the frames of all callers
        return self._future.result()


def _waker(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> Callable[[object], None]:
    def wake(_: object) -> None:
        with suppress(RuntimeError):  # the loop was closed, and its callers with it
            loop.call_soon_threadsafe(event.set)

    return wake


class Opened:
    """The opened handles by key, for each process and each address. It has no lock, because a fork
    could leave a lock locked."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, str], dict[str, Any]] = {}
        self._openings: dict[tuple[int, str, str], Opening[Any]] = {}

    def known(self, url: str, key: str) -> Any:
        """Returns the handle that was opened before, or ``None``."""
        kept = self._kept.get((os.getpid(), url))
        return None if kept is None else kept.get(key)

    def opening(self, url: str, key: str, open: Callable[[], T]) -> Opening[T]:
        """Returns the opening in progress, or starts a new one."""
        at = os.getpid(), url, key
        own: Opening[T] = Opening()
        shared = cast("Opening[T]", self._openings.setdefault(at, own))
        if shared is own:
            own.begin(lambda: self._kept_or(at, open), lambda: self._openings.pop(at, None))
        return shared

    def _kept_or(self, at: tuple[int, str, str], open: Callable[[], T]) -> T:
        process, url, key = at
        known = self.known(url, key)  # an earlier opening may just have ended
        opened: T = open() if known is None else known
        self._kept.setdefault((process, url), {})[key] = opened
        for other in list(self._kept):
            if other[0] == process and other[1] != url:
                self._kept.pop(other, None)  # the address changed, as between tests
        self._openings.pop(at, None)
        return opened

    def forget(self) -> None:
        """Forgets all handles. A handle that nothing else references closes its connections."""
        self._kept.clear()
