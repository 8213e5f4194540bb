"""Settings of queues, as the native module takes them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

#: The value of a setting: a number, a duration or a switch.
Setting = int | float | bool | timedelta
#: The names of all settings: see :meth:`trunkline.Db.create_queue`.
NAMES = frozenset(["max_attempts", "lease", "max_batch", "priorities", "aging", "uniqueness", "partitions", "per_key"])


def checked(named: Mapping[str, Setting]) -> dict[str, Setting]:
    """Checks the names of a task's settings, before a database is needed."""
    if unknown := named.keys() - NAMES:
        raise TypeError(f"a queue has no setting {', '.join(sorted(unknown))}: the settings are {', '.join(sorted(NAMES))}")
    return dict(named)


def settings(named: Mapping[str, Setting]) -> dict[str, Any]:
    """Returns the settings with durations in seconds."""
    return {name: of.total_seconds() if isinstance(of, timedelta) else of for name, of in named.items()}
