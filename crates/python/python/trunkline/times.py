"""Converts durations and times to the forms that the native module takes."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone
from operator import index
from typing import Literal

#: A duration: seconds, or a ``timedelta``.
Duration = float | timedelta
#: How a consumer waits: by polls or notifications, depending on the traffic; only by notifications;
#: or only by polls. A duration is the time between polls.
Wait = Literal["adaptive", "notify", "poll"] | Duration
#: A day in seconds.
DAY = 86_400.0
#: The maximum delay of a message before its first attempt, in seconds: 36,500 days.
MOST_AHEAD = 36_500 * DAY


def seconds(duration: Duration) -> float:
    """Returns a duration in seconds."""
    return duration.total_seconds() if isinstance(duration, timedelta) else float(duration)


def bounded(duration: Duration) -> float:
    """Returns a duration in seconds. Raises ``ValueError`` unless it is finite and at least
    zero."""
    number = seconds(duration)
    if not 0 <= number < math.inf:
        raise ValueError(f"{number} seconds are out of bounds: a duration must be finite, and at least zero")
    return number


def seconds_or_none(duration: Duration | None) -> float | None:
    """Returns a duration in seconds, or ``None`` for ``None``."""
    return None if duration is None else seconds(duration)


def checked_count(what: str, count: int, least: int = 1) -> int:
    """Checks a count before the native module takes it."""
    if not isinstance(count, int) or isinstance(count, bool):  # pyright: ignore[reportUnnecessaryIsInstance]  # for callers without a type checker
        raise TypeError(f"{what} must be a whole number, not {count!r:.50}")
    if not least <= count < 2**31:
        raise ValueError(f"{what} must be from {least} to 2,147,483,647, not {count!r:.50}")
    return count


def wait_of(wait: Wait) -> str | float:
    """Returns a ``Wait`` in the form that the native module takes."""
    if isinstance(wait, timedelta):
        return wait.total_seconds()
    if not isinstance(wait, (str, int, float)):  # pyright: ignore[reportUnnecessaryIsInstance]  # for callers without a type checker
        raise TypeError(f"a consumer's wait is 'adaptive', 'notify', 'poll', or the time between polls, not {wait!r:.50}")
    return wait


def whole_number(n: int, what: str = "n", most: int = 2**63 - 1) -> int:
    """Returns a number of messages as an ``int``. Raises ``ValueError`` if it is out of bounds, and
    ``TypeError`` if it is not a whole number."""
    try:
        number = index(n)
    except TypeError:
        raise TypeError(f"{what} must be a whole number, not {n!r:.50}") from None
    if not 0 <= number <= most:
        raise ValueError(f"{what} must be from 0 to {most:,}, not {number}")
    return number


def due_of(due: Duration | datetime) -> float | datetime:
    """Returns a due time in the form that the native module takes: a delay in seconds, or a
    time."""
    if isinstance(due, (int, float, timedelta)):
        return seconds(due)
    return aware(due)


#: The earliest time that the native module supports; it has long passed.
_LONG_AGO = datetime(1970, 1, 1, tzinfo=timezone.utc)


def aware(time: datetime) -> datetime:
    """Returns a time with a zone, from 1970 on. A time without a zone is the system's local time,
    as everywhere in Python."""
    if not isinstance(time, datetime):  # pyright: ignore[reportUnnecessaryIsInstance]  # a date is not a datetime
        raise TypeError(f"{time!r:.50} is not a datetime: include the time of day")
    if time.year < 1971:  # such a local time may have no form in UTC
        return _LONG_AGO
    if time.tzinfo is not None:
        return time
    try:
        return time.astimezone()
    except (OverflowError, OSError, ValueError):  # the last day of the year 9999
        return time.replace(tzinfo=timezone.utc)
