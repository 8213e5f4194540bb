"""Formats the worker program's logs as lines for people or as JSON for machines."""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

_OWN = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class AsJson(logging.Formatter):
    """Formats each record as one JSON object per line, with the fields of ``extra``."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the record as one JSON object: time in UTC, level, logger, message, the extra
        fields, and the exception."""
        told: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        told.update({name: value for name, value in vars(record).items() if name not in _OWN})
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        return json.dumps(told, default=str, ensure_ascii=False)


@dataclass(frozen=True)
class Begun:
    """The way in which the program logs, for the processes of its handlers."""

    level: str
    as_json: bool
    #: True if Django had been set up before, so that the program's logs replaced Django's.
    is_after_django: bool


_begun: Begun | None = None


def begun() -> Begun | None:
    """Returns the way in which this process logs, or ``None`` if the program has not begun its logs."""
    return _begun


def begin(level: str, as_json: bool) -> None:
    """Sends all logs to standard error."""
    global _begun
    django = sys.modules.get("django.apps")
    _begun = Begun(level, as_json, django is not None and bool(django.apps.ready))
    handler = logging.StreamHandler(sys.stderr)
    people = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(AsJson() if as_json else people)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
