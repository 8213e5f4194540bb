"""When a failed message is tried again."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ..times import Duration, checked_count, seconds

#: Seconds that a message may wait at most.
MOST = 365 * 86400.0


@dataclass(frozen=True)
class Backoff:
    """``first`` after the first attempt, then twice as long each time, ``most`` at most; of each, a random part between half and all,
    so that what failed together does not come back together. The queue's own ``max_attempts`` holds beside it."""

    first: Duration = 1.0
    most: Duration = 3600.0
    max_attempts: int | None = None


@dataclass(frozen=True)
class Fixed:
    """Always that long."""

    delay: Duration
    max_attempts: int | None = None


#: A policy of your own: given the attempt that failed (1 for the first) and its error, how long the message waits, at most 365 days;
#: ``None`` makes it a dead letter. One that raises, or returns anything else, has the message tried again after the default delays.
Custom = Callable[[int, BaseException], Duration | None]
Retry = Backoff | Fixed | Custom


class RetryAfter(Exception):
    """Raised by a handler: try again after that long, at most 365 days."""

    def __init__(self, delay: Duration, reason: str = "") -> None:
        super().__init__(reason or f"to be tried again after {seconds(delay):g} s")
        self.delay = seconds(delay)

    def __reduce__(self) -> tuple[type[RetryAfter], tuple[float, str]]:
        return type(self), (self.delay, str(self))


class Bury(Exception):
    """Raised by a handler: do not try again. The message is a dead letter at once."""


def delay_of(value: object) -> float:
    """A delay in seconds, if it is one that a message can wait. Raises a ``ValueError`` otherwise."""
    try:
        delay = seconds(value)  # type: ignore[arg-type]  # which is what is tried
    except Exception:
        delay = math.nan
    if isinstance(value, (str, bytes)) or not 0 <= delay <= MOST:
        raise ValueError(f"{value!r:.100} is no delay: give seconds or a timedelta, from 0 to 365 days")
    return delay


def as_native(retry: Retry) -> tuple[bool, float, float, int | None]:
    """As the native module takes a policy; one of the user's own is asked before. Raises where it is none."""
    if isinstance(retry, (Fixed, Backoff)) and retry.max_attempts is not None:
        checked_count("max_attempts", retry.max_attempts)
    if isinstance(retry, Fixed):
        return False, delay_of(retry.delay), 0.0, retry.max_attempts
    if isinstance(retry, Backoff):
        return True, delay_of(retry.first), delay_of(retry.most), retry.max_attempts
    if not callable(retry) or isinstance(retry, type):
        raise TypeError(f"{retry!r} is no retry policy: give a Backoff, a Fixed, or a function of the attempt and the error")
    return True, 1.0, 3600.0, None
