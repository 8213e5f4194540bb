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
        """Returns the record as one JSON object: time in UTC, level, logger, message, the
        exception, the stack, and the extra fields, which replace no other field."""
        told: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            told["stack"] = self.formatStack(record.stack_info)
        fields: dict[Any, Any] = vars(record)  # `extra` may have keys of any type
        for name, value in fields.items():
            if name not in _OWN:
                told.setdefault(name if isinstance(name, str) else _text(name), value)
        try:
            return _json(told)
        except Exception:
            return _json({name: _writable(value) for name, value in told.items()})


def _json(value: object) -> str:
    return json.dumps(value, default=_text, ensure_ascii=False, allow_nan=False)


def _writable(value: object) -> object:
    """Returns the value, or its text if the value cannot be written as JSON, for example because it
    contains NaN, itself, or a key that is not a string."""
    try:
        _json(value)
    except Exception:
        return _text(value)
    return value


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception:
        return f"a {type(value).__name__} without a text"


@dataclass(frozen=True)
class Begun:
    """The program's settings for logs, which the processes of its handlers use, too."""

    level: str
    as_json: bool
    #: True if Django had been set up before, so that the program's logs replaced Django's.
    is_after_django: bool


_begun: Begun | None = None


def begun() -> Begun | None:
    """Returns this process's settings for logs, or ``None`` if the program has not begun its logs."""
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
