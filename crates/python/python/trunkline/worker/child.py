"""A process for handlers. It runs one call after another, until the worker's end of the pipe is
closed."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
from collections.abc import Callable
from importlib import import_module
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any

from .. import os_threads
from . import forks
from .backoff import Bury, RetryAfter
from .end_of_process import wait_for_parent
from .ending import reason_of, unwrapped
from .logs import Begun, begin
from .results import check_returned, error_in, outcomes


#: The signals that a terminal or a service manager sends to all processes of a group.
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def main(pipe: Connection, modules: list[str], databases: dict[str, Any] | None, logs: Begun | None) -> None:
    """Runs the calls of the worker. In a Django project, `databases` are the names of its databases
    by alias. `logs` are those of the worker's program."""
    # The worker ends this process, and responds to signals to the whole group. Signals are not
    # ignored, because the user's commands would inherit that setting.
    for number in SIGNALS:
        forks.handle(number, _leave_to_the_worker)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)  # blocked during the start
    # `threading` must not know the thread: gevent, which the modules may import, cannot replace the
    # locks of imports if there is a second thread.
    os_threads.original("_thread", "start_new_thread")(_until_orphaned, ())
    try:
        if logs is not None and not logs.is_after_django:
            begin(logs.level, logs.as_json)
        if databases is not None:  # the handlers' modules may import models
            import_module("trunkline.django.set_up").set_up(databases)
        if logs is not None and logs.is_after_django:
            begin(logs.level, logs.as_json)
        for module in modules:
            import_module(module)
    except BaseException as error:
        pipe.send_bytes(pickle.dumps(reason_of(error)))
        return
    pipe.send_bytes(pickle.dumps(None))
    end_fork = forks.ending()
    while True:
        try:
            request = pipe.recv_bytes()
        except (EOFError, OSError):
            return
        pipe.send_bytes(pickle.dumps(_done(request, end_fork)))


def _leave_to_the_worker(number: int, frame: FrameType | None) -> None:
    """Does nothing."""


def _until_orphaned() -> None:
    """Exits when the worker is gone, because nothing could receive an answer."""
    worker = multiprocessing.parent_process()
    if worker is not None:
        wait_for_parent(worker)
        os._exit(1)


def _done(request: bytes, end_fork: Callable[[BaseException | None], None]) -> tuple[str, Any]:
    """Runs a call and returns its outcome. If the call forked a child, the child returns nothing,
    because the pipe belongs to this process."""
    try:
        module, name, is_batch, pickled = pickle.loads(request)
        result = _function(module, name)(*pickle.loads(pickled))
        end_fork(None)
        if is_batch and result is not None:
            return "each", [_outcome(one) for one in outcomes(result)]
        check_returned(result)
        return "done", None
    except BaseException as error:
        end_fork(error)
        return "failed", _written(error)


def _function(module: str, name: str) -> Any:
    """Returns the function that its module contains under the task's name."""
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return getattr(found, "function", found)


def _outcome(outcome: object) -> tuple[str, bytes | None] | None:
    try:
        error = error_in(outcome)
    except BaseException as own:
        error = own
    return None if error is None else _written(error)


def _written(error: BaseException) -> tuple[str, bytes | None]:
    """Returns the error's reason, and the pickled error if pickling preserves it. A `Bury` or
    `RetryAfter` that pickling does not preserve keeps its meaning."""
    error = unwrapped(error)
    pickled = _pickled(error)
    if pickled is None:
        try:
            if isinstance(error, Bury):
                pickled = _pickled(Bury(str(error)))
            elif isinstance(error, RetryAfter):
                pickled = _pickled(RetryAfter(error.delay, str(error)))
        except BaseException:
            pass  # its own code fails, as in `str`
    return reason_of(error), pickled


def _pickled(error: BaseException) -> bytes | None:
    try:
        pickled = pickle.dumps(error)
        return pickled if type(pickle.loads(pickled)) is type(error) else None
    except BaseException:
        return None
