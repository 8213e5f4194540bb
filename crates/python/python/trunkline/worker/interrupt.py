"""Decides whether a ``KeyboardInterrupt`` in the event loop's thread may come from Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from types import CodeType
from typing import Any, cast


def may_be_of_user(error: BaseException) -> bool:
    """Returns true if Ctrl-C may have raised a ``KeyboardInterrupt``, false if it can only come
    from the handler's own code.

    A handler of SIGINT that has Python code, for example asyncio's or that of
    ``trunkline-worker``, is in the traceback if it raised. A handler without Python code, for
    example Python's default one, leaves no frame: its exception looks like a ``raise`` in the
    task's handler."""
    if threading.current_thread() is not threading.main_thread():
        return False  # signals interrupt the main thread only
    on_signal = signal.getsignal(signal.SIGINT)
    if isinstance(on_signal, signal.Handlers):
        return False  # the signal is ignored, or ends the process
    code, trace = _code_of(on_signal), error.__traceback__
    if code is None:
        return True
    while trace is not None:
        if trace.tb_frame.f_code is code:
            return True
        trace = trace.tb_next
    return False


def cancellations(task: asyncio.Task[Any] | None) -> int:
    """Returns how often a task has been cancelled, including cancellations that have not reached it
    yet. Before Python 3.11 this number is unknown, and the function returns 0."""
    count: int = getattr(task, "cancelling", int)()
    return count


def shielded() -> AbstractContextManager[object]:
    """Returns a context in which a scope of anyio does not cancel the caller. Outside of it, such a
    scope cancels a task again at each wait, which would look like a second cancellation."""
    scope: Any = getattr(sys.modules.get("anyio"), "CancelScope", None)
    return nullcontext() if scope is None else cast("AbstractContextManager[object]", scope(shield=True))


def _code_of(function: object) -> CodeType | None:
    """Returns the Python code that runs when an object is called: a function, a method, a partial
    function, or an instance of a class with ``__call__``. Returns ``None`` without such code."""
    if isinstance(function, partial):
        return _code_of(cast("partial[object]", function).func)
    for one in (function, getattr(type(function), "__call__", None)):
        code = getattr(one, "__code__", None)
        if isinstance(code, CodeType):
            return code
    return None
