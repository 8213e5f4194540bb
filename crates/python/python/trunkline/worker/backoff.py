"""Policies for retrying failed messages."""

from __future__ import annotations

import copyreg
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..times import Duration, checked_count, seconds

#: The maximum delay of a message, in seconds.
MOST = 365 * 86400.0


@dataclass(frozen=True)
class Backoff:
    """A delay of ``first`` seconds after the first attempt, doubling with each attempt up to
    ``most``. The actual delay is a random part of it, between half and all of it, so that messages
    which failed together do not return together.

    ``max_attempts`` of the queue, 10 by default, also applies: the message is a dead letter after
    the smaller of both numbers."""

    first: Duration = 1.0
    most: Duration = 3600.0
    max_attempts: int | None = None


@dataclass(frozen=True)
class Fixed:
    """The same delay after every attempt. ``max_attempts`` of the queue also applies."""

    delay: Duration
    max_attempts: int | None = None


#: A policy of your own. The function takes the number of the failed attempt (1 for the first) and
#: its error, and returns the delay, at most 365 days. ``None`` makes the message a dead letter. If
#: the function raises, or returns anything else, the message is retried after the default delays.
#: After a timeout, the error is a ``TimeoutError``. The event loop calls the function, so while the
#: loop is blocked, messages wait for its decision.
Custom = Callable[[int, BaseException], Duration | None]
Retry = Backoff | Fixed | Custom


class RetryAfter(Exception):
    """Raised by a handler to retry the message after a delay of at most 365 days."""

    def __init__(self, delay: Duration, reason: str = "") -> None:
        self.delay = delay_of(delay)
        super().__init__(reason or f"retry after {self.delay:g} s")

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored(self)


class Bury(Exception):
    """Raised by a handler to make the message a dead letter immediately, without a retry."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored(self)


def _restored(error: Exception) -> tuple[Any, ...]:
    """Returns what `pickle` needs to restore an error without the `__init__` of its class, which
    may take other arguments."""
    return copyreg.__newobj__, (type(error), *error.args), error.__dict__  # type: ignore[attr-defined]


def delay_of(value: object) -> float:
    """Returns a delay in seconds. Raises a ``ValueError`` for a delay that a message cannot
    have."""
    try:
        delay = seconds(value)  # type: ignore[arg-type]  # the ``except`` below handles other types
    except Exception:
        delay = math.nan
    if isinstance(value, (str, bytes)) or not 0 <= delay <= MOST:
        raise ValueError(f"{value!r:.100} is not a delay: give seconds or a timedelta, from 0 to 365 days")
    return delay


def as_native(retry: Retry) -> tuple[bool, float, float, int | None]:
    """Returns a policy in the form that the native module takes. Python calls a user's own policy,
    and the native module has the default delays. Raises if ``retry`` is not a policy."""
    if isinstance(retry, (Fixed, Backoff)) and retry.max_attempts is not None:
        checked_count("max_attempts", retry.max_attempts)
    if isinstance(retry, Fixed):
        return False, delay_of(retry.delay), 0.0, retry.max_attempts
    if isinstance(retry, Backoff):
        return True, delay_of(retry.first), delay_of(retry.most), retry.max_attempts
    if not callable(retry) or isinstance(retry, type):
        raise TypeError(f"{retry!r} is not a retry policy: give a Backoff, a Fixed, or a function of the attempt and the error")
    return True, 1.0, 3600.0, None
