"""Settings of queues, in the form that the native module takes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from .times import checked_count

#: The value of a setting: a number, a duration or a switch.
Setting = int | float | bool | timedelta
#: The names of all settings: see :meth:`trunkline.Db.create_queue`.
NAMES = frozenset(["max_attempts", "lease", "max_batch", "priorities", "aging", "uniqueness", "partitions", "per_key"])


#: The settings that are whole numbers, with their least values.
_COUNTS = {"max_attempts": 1, "max_batch": 1, "priorities": 1, "partitions": 0, "per_key": 1}


def checked(named: Mapping[str, Setting]) -> dict[str, Setting]:
    """Checks a task's settings, before a database is needed."""
    if unknown := named.keys() - NAMES:
        raise TypeError(f"a queue has no setting {', '.join(sorted(unknown))}: the settings are {', '.join(sorted(NAMES))}")
    settings(named)
    return dict(named)


def settings(named: Mapping[str, Setting]) -> dict[str, Any]:
    """Returns the settings with durations in seconds."""
    for name, value in named.items():
        if name in _COUNTS:
            checked_count(name, value, _COUNTS[name])  # type: ignore[arg-type]  # it refuses other types
        elif name == "uniqueness" and not isinstance(value, bool):
            raise TypeError(f"{name} must be True or False, not {value!r:.50}")
        elif name in ("lease", "aging") and not isinstance(value, (int, float, timedelta)):  # pyright: ignore[reportUnnecessaryIsInstance]  # for callers without a type checker
            raise TypeError(f"{name} must be seconds or a timedelta, not {value!r:.50}")
    return {name: of.total_seconds() if isinstance(of, timedelta) else of for name, of in named.items()}


def limit(what: str, number: int | None) -> int | None:
    """Returns a limit that is a whole number; ``None`` stays ``None``."""
    return None if number is None else checked_count(what, number)
