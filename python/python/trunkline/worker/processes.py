"""Handlers in processes of their own."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Awaitable, Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .task import Task


class ProcessDied(Exception):
    """The process of a handler was killed, or ended itself."""


class Processes:
    """A pool of processes; one that broke is replaced."""

    def __init__(self, count: int | None) -> None:
        self._count = count
        self._pool = self._new()

    def _new(self) -> ProcessPoolExecutor:
        # Forked, they would share this process' threads and connections, which do not come along.
        return ProcessPoolExecutor(self._count, multiprocessing.get_context("spawn"))

    def call(self, task: Task[Any]) -> Callable[[Any, Any], Awaitable[Any]]:
        """What calls the task's function there. Its payload is pickled, and there is no context."""
        if task.context is not None:
            raise TypeError(f"{task.__name__} runs in a process, where there is no context")

        async def call(payload: Any, _: object) -> Any:
            pool, loop = self._pool, asyncio.get_running_loop()
            arguments = (payload,) if task.takes_payload else ()
            try:
                return await loop.run_in_executor(pool, run, task.__module__, task.function.__qualname__, arguments)
            except BrokenProcessPool:
                if pool is self._pool:
                    self._pool = self._new()
                raise ProcessDied("a process of handlers died; this one may not be the cause") from None

        return call

    def close(self) -> None:
        """Ends the processes that do nothing; the others end with what they do."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def run(module: str, name: str, arguments: tuple[Any, ...]) -> Any:
    """In the process: the function, which its module has under the task's name."""
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return getattr(found, "function", found)(*arguments)
