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


class NotBegun(Exception):
    """A handler could not start, so its message has had no attempt."""


class _Call:
    """A function's call in a thread. ``end`` is the future of its end once its caller has left."""

    __slots__ = ("outcome", "end", "has_ended")

    def __init__(self, outcome: asyncio.Future[Outcome]) -> None:
        self.outcome = outcome
        self.end: asyncio.Future[None] | None = None
        self.has_ended = False


class Threads:
    """Runs each function in its own thread. A thread whose function exceeded its timeout is
    replaced, so no other function waits for it. If the function does not end soon after that, it
    counts as hanging. The threads do not keep the interpreter from exiting; threads that a function
    starts do."""

    def __init__(self, hanging: Hanging) -> None:
        self._loop = asyncio.get_running_loop()
        self._idle: list[SimpleQueue[Any]] = []
        self._hanging = hanging
        self._is_closed = False

    async def call(self, function: Callable[[], Any]) -> Any:
        """Runs a function in a thread. Returns its result or raises its error. Raises `NotBegun` if
        no thread could start."""
        call = _Call(self._loop.create_future())
        work = self._idle.pop() if self._idle else self._start()
        work.put((function, partial(self._ended, work, call)))
        try:
            returned, result = await call.outcome
        except asyncio.CancelledError:
            # The function may have ended since the cancellation, which has ended the outcome.
            if not call.has_ended:
                call.end = self._loop.create_future()
                self._hanging.watch(call.end)
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
        try:
            os_threads.start(partial(_run, work, self._loop), "trunkline-handler")
        except (RuntimeError, MemoryError) as error:
            # The system permits no more threads, or has no memory for one.
            raise NotBegun(f"its thread did not start: {error}") from error
        return work

    def _ended(self, work: SimpleQueue[Any], call: _Call, outcome: Outcome) -> None:
        call.has_ended = True
        if call.end is not None:
            call.end.set_result(None)
        if self._is_closed:
            work.put(None)
        else:
            self._idle.append(work)
        if not call.outcome.done():
            call.outcome.set_result(outcome)


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
