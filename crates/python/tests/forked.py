"""A function in a fork of the test's process."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

#: The number of seconds after which a fork that waits is ended.
LONGEST = 10


def in_fork(work: Callable[[], object]) -> str:
    """Returns what a function returns in a fork, or the text of its error. Returns an empty text if
    the function does not end."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        try:
            signal.alarm(LONGEST)
            try:
                said = repr(work())
            except BaseException as error:
                said = f"{type(error).__name__}: {error}"
            os.write(writing, said.encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as text:
        said = text.read()
    os.waitpid(child, 0)
    return said
