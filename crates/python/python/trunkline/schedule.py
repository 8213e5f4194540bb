"""When a message is enqueued, again and again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Schedule:
    """A schedule of a name, one of all in the database.

    ``expression`` is five fields of cron, six with seconds first, ``@hourly``, ``@daily``, ``@weekly``, ``@monthly``, ``@yearly``,
    or ``every 90 seconds`` (or minutes, hours, days). Fields mean the clock of ``zone``. ``missed`` says what becomes of ticks that
    no process made in time: ``skip`` leaves them out, ``once`` makes the last, ``each`` makes each.
    """

    name: str
    expression: str
    zone: str = "UTC"
    missed: Literal["skip", "once", "each"] = "once"
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    priority: int = 0
    key: str | None = None
