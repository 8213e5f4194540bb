"""What becomes of a child that a handler forked, where it comes back out of the handler.

Nothing of a worker is the child's: its event loop, its pipes and its connections are the parent's, which goes on with them. So the child ends
there, as it would at the end of a program.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable

#: How many forks lie between the first process and this one. Looked at for each message, so it is no call of the system.
_count = 0


def _forked() -> None:
    global _count
    _count += 1


os.register_at_fork(after_in_child=_forked)


def ending() -> Callable[[BaseException | None], None]:
    """What is to be called behind each handler, with what it raised: ends the process where that is a fork of the one which called this."""
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
