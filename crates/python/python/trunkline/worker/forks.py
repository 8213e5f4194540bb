"""Ends a child that a handler forked, when it returns from the handler.

The event loop, the pipes and the connections of the worker belong to the parent, which continues to
use them. So the child exits at that point, as at the end of a program.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable

#: The number of forks between the first process and this one. It is read for each message, so it is
#: a counter and not a system call.
_count = 0


def _forked() -> None:
    global _count
    _count += 1


os.register_at_fork(after_in_child=_forked)


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
