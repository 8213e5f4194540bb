"""Runs several processes of the worker. A process that dies is replaced; all restart when the
program changes."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType

_logger = logging.getLogger("trunkline.worker")

#: The number of seconds between checks of the processes and files.
_LOOK = 0.25
#: Signals within this number of seconds count as one signal.
_ONE = 1.0
#: A process that lived at most `_SHORT` seconds is replaced after a pause, which doubles from the
#: first value of `_PAUSE` up to the second.
_SHORT, _PAUSE = 5.0, (0.5, 30.0)
#: The exit codes of a process whose application does not exist, and of one whose application raised
#: when it was imported. Only the supervisor sees them; outside they are 2 and 1.
NO_APP, NOT_IMPORTED = os.EX_CONFIG, os.EX_SOFTWARE
_OUTSIDE = {NO_APP: 2, NOT_IMPORTED: 1}


class _Place:
    """A slot for one process, which is replaced if it dies."""

    def __init__(self, command: Sequence[str], environment: dict[str, str]) -> None:
        self._command, self._environment = command, environment
        self._pause, self._after = _PAUSE[0], 0.0
        self._began = 0.0
        self.process: subprocess.Popen[bytes] | None = None
        self.code = 0
        #: True if no other process follows the one that ended.
        self.is_over = False

    def begin(self) -> None:
        """Starts the process. If the system refuses, ``look`` tries again after a pause."""
        self._began, self.is_over, self.process = time.monotonic(), False, None
        try:
            self.process = subprocess.Popen(self._command, env=self._environment)
        except OSError as error:
            pause = self._rest(self._began)
            _logger.error("a worker process cannot start: %s; the next attempt is in %.1f s", error, pause)

    def _rest(self, now: float) -> float:
        """Sets when the next process starts. Returns the pause in seconds."""
        self._pause = _PAUSE[0] if now - self._began > _SHORT else min(self._pause * 2, _PAUSE[1])
        self._after = now + self._pause
        return self._pause

    def look(self, drains: bool) -> None:
        """Replaces a process that died, after its pause. If processes drain, their caller expects an
        end, so a process that has drained, or that failed at the start, has no successor."""
        if self.is_over:
            return
        now = time.monotonic()
        if self.process is not None and (code := self.process.poll()) is not None:
            self.code, self.process = code, None
            if drains and (code in (0, 2, NO_APP, NOT_IMPORTED) or code > 0 and now - self._began <= _SHORT):
                self.is_over = True
                return
            _logger.error("a worker process ended with code %d; a new process starts in %.1f s", _OUTSIDE.get(code, code), self._rest(now))
        if self.process is None and now >= self._after:
            self.begin()

    def has_no_app(self) -> bool:
        """Returns true if the process ended because its application does not exist."""
        return self.process is None and self.code == NO_APP

    def tell(self, number: int) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def ended(self) -> int:
        if self.process is not None:
            self.code = self.process.wait()
        return self.code


def _changes(folder: Path) -> Iterator[bool]:
    """Yields true if a Python file below the folder has changed since the last check, otherwise
    false."""
    seen: dict[str, float] | None = None
    while True:
        now: dict[str, float] = {}
        for path, _, names in os.walk(folder):  # unlike `rglob`, it skips a folder that disappears
            for name in names:
                if name.endswith(".py"):
                    file = os.path.join(path, name)
                    with suppress(OSError):  # it was deleted in the meantime
                        now[file] = os.stat(file).st_mtime
        yield seen is not None and now != seen
        seen = now


def supervise(command: Sequence[str], count: int, reloads: bool, mark: str, drains: bool = False) -> int:
    """Runs until a signal, which is passed on, or until all processes have drained or cannot start.
    Returns the highest exit code of the processes, which is 2 if the application does not exist."""
    environment = {**os.environ, mark: str(os.getpid())}
    places = [_Place(command, environment) for _ in range(max(1, count))]
    told: list[int] = []
    since = 0.0

    def tell(number: int, _: FrameType | None) -> None:
        nonlocal since
        now = time.monotonic()
        if not told:
            since = now
        elif now - since >= _ONE:  # earlier, it is the same signal again
            number = signal.SIGKILL
        else:
            return
        told.append(number)
        for place in places:
            place.tell(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, tell)
    changes = _changes(Path.cwd())
    if reloads:
        next(changes)  # before the processes start, so that later changes are noticed
        # Compiled files identify their source by its size and a time in whole seconds, so a change
        # within a second could go unnoticed.
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
    for place in places:
        place.begin()
    while not told:
        time.sleep(_LOOK)
        if told:
            break
        if reloads and next(changes):
            _logger.info("the program changed: restarting")
            for place in places:
                place.tell(signal.SIGTERM)
            for place in places:
                place.ended()
                if not told:
                    place.begin()
            continue
        for place in places:
            if not told:
                place.look(drains)
        if not reloads and all(place.has_no_app() for place in places):
            return 2
        if not reloads and all(place.is_over for place in places):
            return max(_OUTSIDE.get(place.code, place.code) for place in places)
    # A process that started while the signal arrived has not received it.
    for place in places:
        place.tell(told[0])
    # The signal itself ends a process that has just started.
    codes = [place.ended() for place in places]
    if signal.SIGKILL in told:
        return 1
    return max((0 if -code in told else abs(_OUTSIDE.get(code, code)) for code in codes), default=0)
