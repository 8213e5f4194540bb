"""Settings of queues, as the native module takes them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

#: A number, a duration or a switch.
Setting = int | float | bool | timedelta


def settings(named: Mapping[str, Setting]) -> dict[str, Any]:
    """With durations in seconds."""
    return {name: of.total_seconds() if isinstance(of, timedelta) else of for name, of in named.items()}
