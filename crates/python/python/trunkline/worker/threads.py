"""Threads for handlers that are not async."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
import threading
from collections.abc import Callable
from queue import SimpleQueue
from .. import os_threads
from typing import Any

from . import forks
from .ending import log

#: The outcome of a function: true if it returned, and its result or error. An error is passed as a
#: value, because a future cannot raise a ``StopIteration``.
Outcome = tuple[bool, Any]
#: The minimum number of threads, at any concurrency, that may hang in handlers after their
#: timeouts.
_LEAST = 16


class TooManyHang(RuntimeError):
    """Too many handlers exceeded their timeouts; the worker ends, so that it can be restarted."""


class Threads:
    """Runs each function in its own thread. A thread whose function exceeded its timeout is
    replaced, so no other function waits for it. If too many threads hang, the pool calls
    ``exhausted``. The threads do not keep the interpreter from exiting."""

    def __init__(self, concurrency: int, exhausted: Callable[[BaseException], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._idle: list[SimpleQueue[Any]] = []
        self._hanging = 0
        self._most, self._exhausted = max(concurrency, _LEAST), exhausted
        self._is_closed = False

    async def call(self, function: Callable[[], Any]) -> Any:
        """Runs a function in a thread. Returns its result or raises its error."""
        future: asyncio.Future[Outcome] = self._loop.create_future()
        work = self._idle.pop() if self._idle else self._start()
        state = [False]  # true if the thread hangs

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
            del result  # it references this frame

    def close(self) -> None:
        """Ends the idle threads. The other threads end after their functions."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().put(None)

    def _start(self) -> SimpleQueue[Any]:
        work: SimpleQueue[Any] = os_threads.original("queue", "SimpleQueue")()
        os_threads.start(partial(_run, work, self._loop), "trunkline-handler")
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
