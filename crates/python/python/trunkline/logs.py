"""What the Rust library tells, in Python's ``logging``.

Its events arrive in loggers named after its modules: ``trunkline.postgres.wire.connection``, ``trunkline.worker.outage``. Their levels are
those of ``logging``, and 5 for each statement. A thread of its own, ``trunkline-logs``, hands them to the handlers, so no call waits for a
handler; up to 8 MiB wait for a slow one, and what comes beyond is counted and said. An event that no logger wants costs next to nothing.
Levels are looked at with each connect and each start of a worker, and once a second.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
import traceback
from typing import Any

from ._trunkline import begin_logs, end_logs, log_levels, next_logs

#: Seconds between looks at the levels.
_LOOK = 1.0
#: Seconds that handlers have at the interpreter's exit.
_LAST = 2.0
_TRACE = 5
#: Names that a record has for itself.
_TAKEN = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def begin() -> None:
    """Looks at the levels, and hands events over from now on. Connecting does it, and so does a worker's start."""
    is_first = begin_logs()
    log_levels(_levels())
    if not is_first:
        return
    if logging.getLevelName(_TRACE) == f"Level {_TRACE}":
        logging.addLevelName(_TRACE, "TRACE")
    # Not waited for at the exit, as others are: its own end is below, and comes before Python's.
    thread = threading.Thread(target=_deliver, name="trunkline-logs", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # the interpreter ends
        end_logs()
        return
    atexit.register(_end, thread)


def _end(thread: threading.Thread) -> None:
    """Hands over what has come, and waits two seconds for handlers at most."""
    end_logs()
    thread.join(_LAST)


def _deliver() -> None:
    looked = time.monotonic()
    while (came := next_logs(_LOOK)) is not None:
        events, dropped = came
        for event in events:
            _tell(*event)
        if dropped:
            text = f"{dropped} events of the library were dropped: the handlers of logging are slower than they come"
            _tell(logging.WARNING, "trunkline", text, time.time(), __file__, 0, {"dropped": dropped})
        if time.monotonic() - looked >= _LOOK:
            log_levels(_levels())
            looked = time.monotonic()


def _tell(level: int, name: str, text: str, at: float, file: str, line: int, fields: dict[str, Any]) -> None:
    if name == "trunkline.worker.hand" and fields.get("outcome") == "retried":
        return  # the worker logs it with its traceback
    try:
        logger = logging.getLogger(name)
        if not logger.isEnabledFor(level):
            return
        extra = {f"{field}_" if field in _TAKEN else field: value for field, value in fields.items()}
        record = logger.makeRecord(name, level, file, line, text, (), None, None, extra)
        record.relativeCreated += (at - record.created) * 1000
        record.created, record.msecs = at, int(at % 1 * 1000)
        logger.handle(record)
    except BaseException:  # whatever a handler raises, the next event is told
        if logging.raiseExceptions:
            traceback.print_exc()


def _levels() -> dict[str, int]:
    """From which level on each of the library's loggers wants records; those that have no setting do as their parents."""
    logging.getLogger("trunkline")
    manager, levels = logging.root.manager, dict[str, int]()
    for name, logger in list(manager.loggerDict.items()):
        if (name == "trunkline" or name.startswith("trunkline.")) and isinstance(logger, logging.Logger):
            level = 100 if logger.disabled else max(logger.getEffectiveLevel(), manager.disable + 1)
            levels[name] = max(0, min(level, 100))
    return levels
