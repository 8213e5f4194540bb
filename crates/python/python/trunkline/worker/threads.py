"""Threads for handlers that are not async."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from . import forks
from .ending import log

#: How a function ended: whether it returned, and what it returned or raised. An error is a value here: a ``StopIteration`` that is raised
#: into a future never arrives.
Outcome = tuple[bool, Any]
#: Threads that may hang in handlers that outlived their timeouts, at any concurrency.
_LEAST = 16


class TooManyHang(RuntimeError):
    """Too many handlers outlived their timeouts; the worker ends, to be restarted."""


class Threads:
    """As many threads as functions run at a time. A thread whose function outlived its timeout is replaced, so nothing waits behind it; where
    too many hang, ``exhausted`` is called. The threads keep no interpreter from exiting."""

    def __init__(self, concurrency: int, exhausted: Callable[[BaseException], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._idle: list[SimpleQueue[Any]] = []
        self._hanging = 0
        self._most, self._exhausted = max(concurrency, _LEAST), exhausted
        self._is_closed = False

    async def call(self, function: Callable[[], Any]) -> Any:
        """Runs it in a thread; returns or raises what it does."""
        future: asyncio.Future[Outcome] = self._loop.create_future()
        work = self._idle.pop() if self._idle else self._start()
        state = [False]  # whether it hangs

        def ended(outcome: Outcome) -> None:
            self._ended(work, state, future, outcome)

        work.put((function, ended))
        try:
            returned, result = await future
        except asyncio.CancelledError:
            if not future.done() or future.cancelled():
                self._hangs(state)
            raise
        if returned:
            return result
        try:
            if isinstance(result, StopIteration):
                raise RuntimeError("the handler raised StopIteration") from result
            raise result
        finally:
            del result  # it holds this frame

    def close(self) -> None:
        """Ends the threads that do nothing; the others end with what they do."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().put(None)

    def _start(self) -> SimpleQueue[Any]:
        work: SimpleQueue[Any] = SimpleQueue()
        threading.Thread(target=_run, args=(work, self._loop), name="trunkline-handler", daemon=True).start()
        return work

    def _hangs(self, state: list[bool]) -> None:
        state[0] = True
        self._hanging += 1
        if self._hanging == self._most:
            self._exhausted(TooManyHang(f"{self._hanging} handlers outlived their timeouts and still run, each in a thread"))
        elif self._hanging * 2 == self._most:
            log(logging.WARNING, "%d handlers outlived their timeouts and still run; at %d the worker ends", self._hanging, self._most)

    def _ended(self, work: SimpleQueue[Any], state: list[bool], future: asyncio.Future[Outcome], outcome: Outcome) -> None:
        if state[0]:
            self._hanging -= 1
        if self._is_closed:
            work.put(None)
        else:
            self._idle.append(work)
        if not future.done():
            future.set_result(outcome)


def _run(work: SimpleQueue[Any], loop: asyncio.AbstractEventLoop) -> None:
    end_fork = forks.ending()
    while (one := work.get()) is not None:
        function, ended = one
        try:
            outcome = True, function()
            end_fork(None)
        except BaseException as error:
            end_fork(error)
            outcome = False, error
        try:
            loop.call_soon_threadsafe(ended, outcome)
        except RuntimeError:
            return  # the loop is closed: no caller waits
        del one, function, ended, outcome
