"""Threads for handlers that are not async."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any

from .. import os_threads
from . import forks
from .hanging import Hanging

#: The outcome of a function: true if it returned, and its result or error. An error is passed as a
#: value, because a future cannot raise a ``StopIteration``.
Outcome = tuple[bool, Any]


class Threads:
    """Runs each function in its own thread. A thread whose function exceeded its timeout is
    replaced, so no other function waits for it, and counts as hanging. The threads do not keep the
    interpreter from exiting; threads that a function starts do."""

    def __init__(self, hanging: Hanging) -> None:
        self._loop = asyncio.get_running_loop()
        self._idle: list[SimpleQueue[Any]] = []
        self._hanging = hanging
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
                state[0] = True
                self._hanging.began()
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

    def _ended(self, work: SimpleQueue[Any], state: list[bool], future: asyncio.Future[Outcome], outcome: Outcome) -> None:
        if state[0]:
            self._hanging.ended()
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
