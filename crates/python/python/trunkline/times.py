"""Durations and times, as people write them and as the native module takes them."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone

#: A duration: seconds, or a ``timedelta``.
Duration = float | timedelta


def seconds(duration: Duration) -> float:
    """A duration in seconds."""
    return duration.total_seconds() if isinstance(duration, timedelta) else float(duration)


def bounded(duration: Duration) -> float:
    """A duration in seconds, at least zero and finite."""
    number = seconds(duration)
    if not 0 <= number < math.inf:
        raise ValueError(f"{number} seconds are out of bounds: a time is at least zero, and finite")
    return number


def seconds_or_none(duration: Duration | None) -> float | None:
    """The same of one that may be left out."""
    return None if duration is None else seconds(duration)


def checked_count(what: str, count: int, least: int = 1) -> int:
    """A number of things, as the native module can take it."""
    if not isinstance(count, int) or isinstance(count, bool):  # pyright: ignore[reportUnnecessaryIsInstance]  # for what is not checked
        raise TypeError(f"{what} is a whole number, not {count!r:.50}")
    if not least <= count < 2**31:
        raise ValueError(f"{what} is from {least} to 2,147,483,647, not {count!r:.50}")
    return count


def due_of(due: Duration | datetime) -> float | datetime:
    """A delay in seconds, or a time, as the native module takes a due time."""
    if isinstance(due, (int, float, timedelta)):
        return seconds(due)
    return aware(due)


#: A time that has passed long ago: the native module has none before it.
_LONG_AGO = datetime(1970, 1, 1, tzinfo=timezone.utc)


def aware(time: datetime) -> datetime:
    """A time that says what it means, from 1970 on. One without a zone is the system's local time, as everywhere in Python."""
    if not isinstance(time, datetime):  # pyright: ignore[reportUnnecessaryIsInstance]  # a date is none
        raise TypeError(f"{time!r:.50} is no datetime: say the time of the day, too")
    if time.year < 1971:  # whose local time may have no form in UTC
        return _LONG_AGO
    return time if time.tzinfo is not None else time.astimezone()
