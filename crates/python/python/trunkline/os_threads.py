"""Threads and locks of the operating system, even where gevent or eventlet has replaced those of
Python.

A greenlet that waits in native code stops all other greenlets of its thread, and waits indefinitely
if one of them has to end the wait.
"""

from __future__ import annotations

import _thread
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any


def original(module: str, name: str) -> Any:
    """Returns a function or a class of the standard library as it was before gevent or eventlet
    replaced it."""
    gevent: Any = sys.modules.get("gevent.monkey")
    eventlet: Any = sys.modules.get("eventlet.patcher")
    if gevent is not None:
        return gevent.get_original(module, name)
    return getattr(import_module(module) if eventlet is None else eventlet.original(module), name)


class _Thread(threading.Thread):
    """A daemon thread whose own threads are not daemons, as if they were started by the program."""

    _has_begun = False

    @property
    def daemon(self) -> bool:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]
        """True until the thread runs: from then on, only its own threads read it."""
        return not self._has_begun

    def run(self) -> None:
        self._has_begun = True
        super().run()


def is_own(thread: threading.Thread) -> bool:
    """Returns true for a thread of this module, for which the interpreter does not wait at exit."""
    return isinstance(thread, _Thread)


def start(run: Callable[[], object], name: str) -> Callable[[float], object]:
    """Starts a thread for which the interpreter does not wait at exit. Returns a function that
    waits for its end for at most a number of seconds."""
    start_new_thread = original("_thread", "start_new_thread")
    if _thread.start_new_thread is start_new_thread:
        thread = _Thread(target=run, name=name)
        thread.start()
        return thread.join
    running = original("_thread", "allocate_lock")()

    def named() -> None:
        try:
            threading.current_thread().name = name
            run()
        finally:
            running.release()

    running.acquire()
    start_new_thread(named, ())
    return lambda longest: running.acquire(timeout=longest)
