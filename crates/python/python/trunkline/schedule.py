"""Schedules, which enqueue a message again and again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from .draft import Options, check


@dataclass(frozen=True)
class Schedule:
    """A schedule, whose name is unique in the database.

    ``expression`` is five fields of cron, six with seconds first, ``@hourly``, ``@daily``,
    ``@weekly``, ``@monthly``, ``@yearly``, or ``every 90 seconds`` (or minutes, hours, days). The
    fields refer to the clock of ``zone``. ``missed`` decides which ticks are made if several are
    due, or the last one is old, because no process made them in time: ``once`` makes only the last
    one; ``skip`` makes only the last one, and only if it is at most a minute old; ``each`` makes
    all, but at most the last 1,000.
    """

    name: str
    expression: str
    zone: str = "UTC"
    missed: Literal["skip", "once", "each"] = "once"
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    priority: int = 0
    key: str | None = None

    def __post_init__(self) -> None:
        """Refuses values that no schedule can have, before anything is sent."""
        for what in ("name", "expression", "zone", "missed"):
            if not isinstance(text := getattr(self, what), str):
                raise TypeError(f"the {what} of a schedule must be a str, not {text!r:.50}")
        check(Options(metadata=self.metadata, priority=self.priority, key=self.key))
