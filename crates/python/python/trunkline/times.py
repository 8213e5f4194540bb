"""Durations and times, as people write them and as the native module takes them."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

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


def aware(time: datetime) -> datetime:
    """A time that says what it means. One without a zone is the system's local time, as everywhere in Python."""
    return time if time.tzinfo is not None else time.astimezone()
