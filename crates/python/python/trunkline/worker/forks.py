"""Separates a child that a handler forked from the worker, and ends it when it returns from the
handler.

The event loop, the pipes and the connections of the worker belong to the parent, which continues to
use them. So the child exits at that point, as at the end of a program. A signal to the child must
not reach the worker, so the child has the signal handlers from before the worker.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from _thread import get_ident
from collections.abc import Callable
from types import FrameType
from typing import Any

#: The number of forks between the first process and this one. It is read for each message, so it is
#: a counter and not a system call.
_count = 0
#: The worker's signal handlers, and the handlers before them, by the numbers of the signals.
_handlers: dict[int, tuple[Any, Any]] = {}
#: The blocked signals before a fork, by the threads that fork.
_blocked: dict[int, Any] = {}


def handle(number: int, handler: Callable[[int, FrameType | None], object], before: Any = None) -> None:
    """Installs the worker's handler of a signal. Forks of this process have the handler `before`,
    which is the current handler by default."""
    before = signal.getsignal(number) if before is None else before
    own, original = _handlers.get(number, (None, None))
    if before is not None and before == own:
        before = original
    _handlers[number] = handler, signal.SIG_DFL if before is None else before
    signal.signal(number, handler)


def _forks() -> None:
    """Delays signals. Otherwise a signal that arrives in the child before `_forked` would be lost
    there, and would wake the worker's event loop."""
    if own := _installed():
        _blocked[get_ident()] = signal.pthread_sigmask(signal.SIG_BLOCK, own)


def _forked() -> None:
    global _count
    _count += 1
    if own := _installed():
        signal.set_wakeup_fd(-1)  # the worker's event loop reads from its other end
        for number in own:
            signal.signal(number, _handlers[number][1])
    _unblock()
    _blocked.clear()  # of threads that forked at the same time, which the child does not have


def _installed() -> list[int]:
    """Returns the signals that have the worker's handlers. The handlers' code may have others."""
    return [number for number, (own, _) in _handlers.items() if signal.getsignal(number) == own]


def _unblock() -> None:
    blocked = _blocked.pop(get_ident(), None)
    if blocked is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


os.register_at_fork(before=_forks, after_in_parent=_unblock, after_in_child=_forked)


def ending() -> Callable[[BaseException | None], None]:
    """Returns a function to call after each handler, with the handler's exception. It ends the
    process if this is a fork of the process that called ``ending``."""
    own = _count

    def end(error: BaseException | None) -> None:
        if _count != own:
            _end(error)

    return end


def _end(error: BaseException | None) -> None:
    code: object = 0
    try:
        if isinstance(error, SystemExit):
            code = error.code
            if code is not None and not isinstance(code, int):
                print(code, file=sys.stderr)
        elif error is not None:
            code = 1
            traceback.print_exception(type(error), error, error.__traceback__)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)
