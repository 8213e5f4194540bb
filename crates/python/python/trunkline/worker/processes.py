"""Runs handlers in separate processes."""

from __future__ import annotations

import asyncio
import atexit
import logging
import multiprocessing
import os
import pickle
import signal
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from importlib import import_module
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any

from .child import SIGNALS, main
from .end_of_process import End
from .ending import WRITTEN, log
from .logs import begun
from .threads import NotBegun, Threads

if TYPE_CHECKING:
    from .context import Context
    from .task import Task


#: The number of processes that a call replaces in addition to those that existed before it.
_MORE = 3


class ProcessDied(Exception):
    """A handler's process was killed, or exited."""


class ProcessesClosed(Exception):
    """The worker ended before the handler, and killed its process, or had no process for it."""


class GivenUp(Exception):
    """The worker gave up on the message before a process was free for its handler."""


class ProcessFailed(RuntimeError):
    """A process for handlers did not start."""


class HandlerError(Exception):
    """The text of a handler's error that could not be pickled in its process."""


class _Process:
    """A process, and the pipe to it."""

    def __init__(self, modules: list[str], databases: dict[str, Any] | None) -> None:
        # A forked process would inherit this process's threads and connections in an unusable
        # state.
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        for end in (self._pipe, theirs):
            os.set_blocking(end.fileno(), True)  # gevent makes both ends return at once
        self._worker = os.getpid()
        self._process = context.Process(target=main, args=(theirs, modules, databases, begun()), name="trunkline-handlers")
        # Signals are blocked until the process has installed its signal handlers. The resource
        # tracker unblocks signals when it starts, so it must already run.
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        self._end = End(self._process)

    def ready(self) -> None:
        """Waits until the process has imported the modules of the handlers."""
        try:
            said = self._receive()
        except ProcessDied as error:
            raise ProcessFailed(f"a process for handlers did not start: {error}") from None
        if said is not None:
            raise ProcessFailed(f"a process for handlers did not start: {said}")

    def is_alive(self) -> bool:
        """Returns false if the process has ended, for example while it was idle."""
        return not self._end.wait(0)

    def exchange(self, request: bytes) -> Any:
        """Runs a call in the process, and returns the answer."""
        try:
            self._pipe.send_bytes(request)
        except OSError:
            pass  # it died; `_receive` notices that
        return self._receive()

    def _receive(self) -> Any:
        self._end.wait(None, self._pipe)
        try:
            if self._pipe.poll():
                return pickle.loads(self._pipe.recv_bytes())
        except (EOFError, OSError):
            pass
        raise ProcessDied(f"the process of the handler died: it {self.end(5)}")

    def end(self, seconds: float) -> str:
        """Describes how the process ended, after a wait of at most `seconds` for its exit code."""
        self._end.wait(seconds)
        code = self._process.exitcode
        return f"was killed by signal {-code}" if code is not None and code < 0 else f"ended with code {code}"

    def kill(self) -> None:
        """Kills the process. Does nothing in a fork of the worker, for example when the fork exits:
        the process belongs to the worker."""
        if os.getpid() == self._worker:
            self._process.kill()

    def join(self) -> None:
        """Waits until the process has ended, except in a fork of the worker. The pipe is closed
        with its last reference, because a thread may still read from it."""
        if os.getpid() == self._worker:
            self._process.join()


class Processes:
    """The processes, one for each handler that may run at the same time. A process that dies is
    replaced, and only its own message fails."""

    def __init__(self, count: int, tasks: list[Task[Any]], threads: Threads) -> None:
        self._count, self._threads = count, threads
        self._modules, self._databases = sorted({task.__module__ for task in tasks}), _databases()
        self._idle: deque[_Process] = deque()
        self._all: set[_Process] = set()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._starting: set[asyncio.Task[None]] = set()
        #: The reason why a process did not start. After that, no process is started.
        self._failure: ProcessFailed | None = None
        self._is_closed = False

    async def start(self) -> ProcessFailed | None:
        """Starts all processes, and waits until each is ready. So if a process cannot start, no
        attempt of a message is counted. Returns that failure."""
        # At its end, the interpreter waits for processes that were not closed.
        atexit.register(self._kill)
        await asyncio.gather(*(self._start() for _ in range(self._count)))
        return self._failure

    def call(self, task: Task[Any]) -> Callable[[Any, Any, object], Awaitable[Any]]:
        """Returns a function that calls the task's function in a process. The payload is pickled,
        and the function does not receive the context."""
        place = task.__module__, task.function.__qualname__, task.batch is not None
        timeout, loop = task.timeout, asyncio.get_running_loop()

        async def call(payload: Any, context: Context | None, _: object) -> Any:
            request = pickle.dumps((*place, pickle.dumps((payload,) if task.takes_payload else ())))
            process = await self._take()
            if context is not None and context.is_cancelled:
                self._give_back(process)
                raise GivenUp
            has_answered = is_late = is_whole = False

            def exchange() -> Any:
                nonlocal has_answered
                said = process.exchange(request)
                has_answered = True
                return said

            def end() -> None:
                nonlocal is_late
                if not has_answered:  # otherwise the answer waits for the loop, as this call did
                    is_late = True
                    process.kill()

            timer = None if timeout is None else loop.call_later(timeout, end)
            try:
                said = await self._threads.call(exchange)
                is_whole = not is_late
            except NotBegun:
                is_whole = True
                raise
            except ProcessDied:
                if is_late:
                    raise TimeoutError(f"the handler took longer than {timeout:g} s") from None
                if self._is_closed:
                    raise ProcessesClosed from None
                raise
            finally:
                if timer is not None:
                    timer.cancel()
                if is_whole:
                    self._give_back(process)
                else:
                    self._replace(process)  # it died, was killed, or its caller left
            return _result_of(said)

        return call

    def close(self) -> None:
        """Kills all processes, and ends the wait for them. The messages that they still handle have
        already been released."""
        self._is_closed = True
        atexit.unregister(self._kill)
        for starting in self._starting:
            starting.cancel()
        self._kill()
        for process in list(self._all):
            process.join()
        self._all.clear()
        # A process keeps its pipe open, and this object is in cycles, which only the garbage collector
        # ends.
        self._idle.clear()
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done() and not waiter.get_loop().is_closed():
                waiter.set_result(None)

    def _kill(self) -> None:
        for process in list(self._all):
            process.kill()

    async def _take(self) -> _Process:
        """Takes an idle process, and replaces those that died while they were idle. Raises
        `NotBegun` if their replacements die, too."""
        how = ""
        for _ in range(self._count + _MORE):
            process = await self._take_idle()
            if process.is_alive():
                return process
            how = process.end(1)
            log(logging.WARNING, "an idle process for handlers %s: a new process starts", how)
            self._replace(process)
        raise NotBegun(f"each process for it died while it was idle; the last one {how}")

    async def _take_idle(self) -> _Process:
        while not self._idle:
            if self._is_closed:
                raise ProcessesClosed
            if self._failure is not None:
                raise self._failure
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            except BaseException:
                if waiter in self._waiting:
                    self._waiting.remove(waiter)
                else:
                    self._wake()  # it was woken, but takes no process
                raise
        return self._idle.popleft()

    def _wake(self) -> None:
        while self._waiting and (self._idle or self._failure is not None):
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _give_back(self, process: _Process) -> None:
        if not self._is_closed:
            self._idle.append(process)
        self._wake()

    def _replace(self, process: _Process) -> None:
        self._all.discard(process)
        process.kill()
        if self._is_closed:
            return
        starting = asyncio.ensure_future(self._start(process))
        self._starting.add(starting)
        starting.add_done_callback(self._starting.discard)

    async def _start(self, before: _Process | None = None) -> None:
        """Starts a process, which may replace one that was killed."""
        made: list[_Process] = []

        def begin() -> None:
            if before is not None:
                before.join()
            made.append(_Process(self._modules, self._databases))
            self._all.add(made[0])
            if self._is_closed:
                made[0].kill()
            made[0].ready()

        try:
            await self._threads.call(begin)
        except Exception as error:
            log(logging.ERROR, "%s", error)
            self._failure = error if isinstance(error, ProcessFailed) else ProcessFailed(f"a process for handlers did not start: {error}")
            for process in made:
                process.kill()
            while self._waiting:
                self._wake()
            return
        self._give_back(made[0])


def _databases() -> dict[str, Any] | None:
    """Returns the current names of Django's databases by alias, or None if Django is not set up.
    Django's tests change them in memory, so a process cannot read them from the settings."""
    django = sys.modules.get("django.apps")
    if django is None or not django.apps.ready or "DJANGO_SETTINGS_MODULE" not in os.environ:
        return None
    settings = import_module("django.db").connections.settings
    return {alias: said["NAME"] for alias, said in settings.items() if "NAME" in said}


def _result_of(said: Any) -> Any:
    """Returns the function's result from the process, or raises its error."""
    kind, value = said
    if kind == "failed":
        raise _error_of(value)
    if kind == "each":
        return [None if one is None else _error_of(one) for one in value]
    return None


def _error_of(written: tuple[str, bytes | None]) -> BaseException:
    """Returns the error itself if it can be unpickled. It carries the reason that its process
    wrote."""
    reason, pickled = written
    error: BaseException = HandlerError(reason.partition("\n")[0])
    if pickled is not None:
        try:
            found = pickle.loads(pickled)
            error = found if isinstance(found, BaseException) else error
        except BaseException:
            pass  # its class may exist only in that process
    try:
        setattr(error, WRITTEN, reason)
    except BaseException:
        pass
    return error


def default_count() -> int:
    """Returns the default number of processes: one per processor."""
    return os.cpu_count() or 1


