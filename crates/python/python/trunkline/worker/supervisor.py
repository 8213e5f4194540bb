"""Several processes of the worker: one that dies is replaced; all restart when the program changes."""

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

#: Seconds between looks at the processes and files.
_LOOK = 0.25
#: Seconds within which signals are one.
_ONE = 1.0
#: A process that lived shorter is replaced after a pause, which doubles from the first to the second.
_SHORT, _PAUSE = 5.0, (0.5, 30.0)


class _Place:
    """The place of one process."""

    def __init__(self, command: Sequence[str], environment: dict[str, str]) -> None:
        self._command, self._environment = command, environment
        self._pause, self._after = _PAUSE[0], 0.0
        self._began = 0.0
        self.process: subprocess.Popen[bytes] | None = None
        self.code = 0
        #: It ended by itself, and well.
        self.is_done = False

    def begin(self) -> None:
        self._began, self.is_done = time.monotonic(), False
        self.process = subprocess.Popen(self._command, env=self._environment)

    def look(self, drains: bool) -> None:
        """Replaces what died, when its pause is over; where processes drain, one that ended well has done so."""
        if self.is_done:
            return
        now = time.monotonic()
        if self.process is not None and (code := self.process.poll()) is not None:
            if drains and code == 0:
                self.code, self.process, self.is_done = code, None, True
                return
            lived = now - self._began
            self._pause = _PAUSE[0] if lived > _SHORT else min(self._pause * 2, _PAUSE[1])
            self._after = now + self._pause
            self.code, self.process = code, None
            _logger.error("a worker process ended with %d; another begins in %.1f s", code, self._pause)
        if self.process is None and now >= self._after:
            self.begin()

    def tell(self, number: int) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def ended(self) -> int:
        if self.process is not None:
            self.code = self.process.wait()
        return self.code


def _changes(folder: Path) -> Iterator[bool]:
    """Whether a Python file below the folder changed since the last look."""
    seen: dict[str, float] | None = None
    while True:
        now: dict[str, float] = {}
        for path, _, names in os.walk(folder):  # which passes over a folder that is gone when it comes to it, as `rglob` does not
            for name in names:
                if name.endswith(".py"):
                    file = os.path.join(path, name)
                    with suppress(OSError):  # it was there a moment ago
                        now[file] = os.stat(file).st_mtime
        yield seen is not None and now != seen
        seen = now


def supervise(command: Sequence[str], count: int, reloads: bool, mark: str, drains: bool = False) -> int:
    """Until a signal, which is passed on, or until all have drained. Returns the worst code of the processes."""
    environment = {**os.environ, mark: str(os.getpid())}
    places = [_Place(command, environment) for _ in range(max(1, count))]
    told: list[int] = []
    since = 0.0

    def tell(number: int, _: FrameType | None) -> None:
        nonlocal since
        now = time.monotonic()
        if not told:
            since = now
        elif now - since >= _ONE:  # what comes within is the same signal, sent to the group and to this process
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
        next(changes)  # before anything begins: what changes while it does counts
        # Compiled files know their source by whole seconds and its size, so a change within a second would not be seen.
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
        if not reloads and all(place.is_done for place in places):
            return 0
    # One that began while the signal came has not got it.
    for place in places:
        place.tell(told[0])
    # One that had just begun ends by the signal itself.
    codes = [place.ended() for place in places]
    if signal.SIGKILL in told:
        return 1
    return max((0 if -code in told else abs(code) for code in codes), default=0)
