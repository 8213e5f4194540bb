"""The end of a process, even if a process that it forked still runs.

The sentinel of `multiprocessing` is a pipe. A forked process inherits its other end and keeps it
open.
"""

from __future__ import annotations

import os
import time
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

#: The number of seconds between checks on systems without descriptors of processes.
_LOOK = 0.5


def _descriptor_of(process: int | None) -> int | None:
    """Returns a descriptor that can be read once the process has ended, if the system has them."""
    try:
        return os.pidfd_open(process) if process is not None and hasattr(os, "pidfd_open") else None
    except OSError:  # an older kernel, or a sandbox
        return None


class End:
    """The end of a child of this process, for which a thread can wait."""

    def __init__(self, process: SpawnProcess) -> None:
        self._process = process
        self._descriptor = _descriptor_of(process.pid)

    def wait(self, longest: float | None, pipe: Connection | None = None) -> bool:
        """Waits until the process has ended or the pipe can be read, for at most `longest` seconds.
        Returns true if the process has ended."""
        ended = self._process.sentinel if self._descriptor is None else self._descriptor
        until = None if longest is None else time.monotonic() + longest
        others: list[Any] = [] if pipe is None else [pipe]
        while True:
            left = None if until is None else max(0.0, until - time.monotonic())
            pause = left if self._descriptor is not None else _LOOK if left is None else min(left, _LOOK)
            ready = wait([ended, *others], pause)
            if ended in ready or self._process.exitcode is not None:
                return True
            if ready or left is not None and left <= (pause or 0.0):
                return False

    def __del__(self) -> None:
        if (descriptor := getattr(self, "_descriptor", None)) is not None:
            os.close(descriptor)


def wait_for_parent(parent: BaseProcess) -> None:
    """Waits until the process that started this one has ended."""
    descriptor = _descriptor_of(parent.pid)
    ended = parent.sentinel if descriptor is None else descriptor
    while os.getppid() == parent.pid and not wait([ended], _LOOK if descriptor is None else None):
        pass
