"""Formats the worker program's logs as lines for people or as JSON for machines."""

from __future__ import annotations

import json
import logging
import sys
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


def begin(level: str, as_json: bool) -> None:
    """Sends all logs to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    people = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(AsJson() if as_json else people)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
