"""The Rust library's log events, in Python's ``logging``.

The events arrive in loggers that are named after the library's modules:
``trunkline.postgres.wire.connection``, ``trunkline.worker.outage``. Their levels are those of
``logging``, and 5 for each statement. A separate thread, ``trunkline-logs``, passes them to the
handlers, so no call waits for a handler. Up to 8 MiB of events wait for slow handlers; further
events are dropped, and their number is logged. An event that no logger wants costs next to nothing.
The levels are read at each connect, at each start of a worker, and once a second.
"""

from __future__ import annotations

import atexit
import logging
import time
import traceback
from collections.abc import Callable
from typing import Any

from . import os_threads
from ._trunkline import begin_logs, end_logs, log_levels, next_logs

#: The number of seconds between reads of the levels.
_LOOK = 1.0
#: The number of seconds that handlers get to finish when the interpreter exits.
_LAST = 2.0
_TRACE = 5
#: The maximum number of failures that are remembered as logged.
_REMEMBERED = 4096
#: The names of a record's own attributes.
_TAKEN = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

#: The deliveries whose failure the worker's Python code has logged: queue, id and attempt. Where
#: the events of failures are switched off, nothing removes them, so their number is limited.
_logged: dict[tuple[str, int, int], None] = {}
_lock = os_threads.original("_thread", "allocate_lock")()


def has_logged(queue: str, id: int, attempt: int) -> None:
    """Remembers that a failure was logged with its traceback, so that the library's event about it
    is not passed on."""
    with _lock:
        _logged[queue, id, attempt] = None
        if len(_logged) > _REMEMBERED:
            del _logged[next(iter(_logged))]


def _is_logged(fields: dict[str, Any]) -> bool:
    with _lock:
        return (fields.get("queue"), fields.get("id"), fields.get("attempt")) in _logged


def begin() -> None:
    """Reads the levels, and passes events on from now on. This function is called at each connect
    and at each start of a worker."""
    is_first = begin_logs()
    log_levels(_levels())
    if not is_first:
        return
    if logging.getLevelName(_TRACE) == f"Level {_TRACE}":
        logging.addLevelName(_TRACE, "TRACE")
    try:
        wait = os_threads.start(_deliver, "trunkline-logs")
    except RuntimeError:  # the interpreter is exiting
        end_logs()
        return
    atexit.register(_end, wait)


def _end(wait: Callable[[float], object]) -> None:
    """Passes on the remaining events, and waits at most two seconds for handlers."""
    end_logs()
    wait(_LAST)


def _deliver() -> None:
    looked = time.monotonic()
    while (came := next_logs(_LOOK)) is not None:
        events, dropped = came
        for event in events:
            _tell(*event)
        if dropped:
            text = f"{dropped} events of the library were dropped, because the handlers of logging were too slow"
            _tell(logging.WARNING, "trunkline", text, time.time(), __file__, 0, {"dropped": dropped})
        if time.monotonic() - looked >= _LOOK:
            log_levels(_levels())
            looked = time.monotonic()


def _tell(level: int, name: str, text: str, at: float, file: str, line: int, fields: dict[str, Any]) -> None:
    if name == "trunkline.worker.hand" and fields.get("outcome") == "retried" and _is_logged(fields):
        return
    try:
        logger = logging.getLogger(name)
        if not logger.isEnabledFor(level):
            return
        extra = {f"{field}_" if field in _TAKEN else field: value for field, value in fields.items()}
        record = logger.makeRecord(name, level, file, line, text, (), None, None, extra)
        record.relativeCreated += (at - record.created) * 1000
        record.created, record.msecs = at, int(at % 1 * 1000)
        logger.handle(record)
    except BaseException:  # an error of a handler must not stop later events
        if logging.raiseExceptions:
            traceback.print_exc()


def _levels() -> dict[str, int]:
    """Returns the minimum level of each of the library's loggers. A logger without a level has that
    of its parent."""
    logging.getLogger("trunkline")
    manager, levels = logging.root.manager, dict[str, int]()
    for name, logger in list(manager.loggerDict.items()):
        if (name == "trunkline" or name.startswith("trunkline.")) and isinstance(logger, logging.Logger):
            level = 100 if logger.disabled else max(logger.getEffectiveLevel(), manager.disable + 1)
            levels[name] = max(0, min(level, 100))
    return levels
