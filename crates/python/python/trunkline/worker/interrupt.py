"""Decides whether a ``KeyboardInterrupt`` in the event loop's thread may come from Ctrl-C."""

from __future__ import annotations

import signal
import threading
from types import CodeType
from typing import Any


def may_be_of_user(error: BaseException) -> bool:
    """Returns true if Ctrl-C may have raised a ``KeyboardInterrupt``, false if it can only come
    from the handler's own code.

    Python's default handler of SIGINT raises at any line, which looks like a ``raise`` in the
    handler. Any other handler, for example asyncio's or that of ``trunkline-worker``, is in the
    traceback if it raised."""
    if threading.current_thread() is not threading.main_thread():
        return False  # signals interrupt the main thread only
    on_signal = signal.getsignal(signal.SIGINT)
    if on_signal is signal.default_int_handler:
        return True
    code, trace = _code_of(on_signal), error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code is code:
            return True
        trace = trace.tb_next
    return False


def _code_of(function: Any) -> CodeType | None:
    """Returns the code of a function, a method or a partial function."""
    while hasattr(function, "func"):
        function = function.func
    found: CodeType | None = getattr(function, "__code__", None) or getattr(getattr(function, "__func__", None), "__code__", None)
    return found
