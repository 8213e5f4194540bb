"""Writes values as JSON."""

from __future__ import annotations

import dataclasses
import enum
import json
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, cast
from uuid import UUID

_MICROSECOND = timedelta(microseconds=1)


def writable(value: Any) -> object:
    """Returns the JSON form of a value of a type that JSON does not have."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, (UUID, Decimal)):
        return str(value)
    if isinstance(value, timedelta):
        return _seconds(value)
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (set, frozenset)):
        return list(cast("set[Any]", value))
    raise TypeError(f"a {type(value).__name__} cannot be represented in JSON")


def _seconds(value: timedelta) -> float | str:
    """Returns a duration as a number, or as a string if a number would not be exact. A number is
    exact for whole seconds, and with a fraction up to 272 years."""
    seconds = value.total_seconds()
    with suppress(OverflowError):  # the longest duration, rounded up, overflows
        if timedelta(seconds=seconds) == value:
            return seconds
    count = value // _MICROSECOND
    whole, rest = divmod(abs(count), 1_000_000)
    return f"{'-' if count < 0 else ''}{whole}.{rest:06d}"


def _writer() -> Callable[[Any], str]:
    """Returns a function that writes JSON. ``json.JSONEncoder`` spends half of its time on creating
    an encoder for each value; this encoder is created once."""
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=writable).encode
    text: Any = getattr(json.encoder, "encode_basestring")
    parts: Any = make(None, writable, text, None, ":", ",", False, False, False)
    return lambda value: "".join(parts(value, 0))


_write = _writer()
#: Matches strings, so that their contents are skipped, and numbers with a positive exponent.
_LARGE = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?[eE]\+?\d+')


def write(value: Any) -> str:
    """Returns a value as JSON, without exponents."""
    text = _write(value)
    return without_exponents(text) if "e+" in text else text


def without_exponents(text: str) -> str:
    """Returns a JSON text in which floats with a positive exponent are written as digits with a
    point. ``jsonb`` has no exponents, and without the point a float would come back as an int."""
    return _LARGE.sub(_with_digits, text)


def _with_digits(found: re.Match[str]) -> str:
    token = found[0]
    if token[0] == '"':
        return token
    digits = format(Decimal(token), "f")
    return digits if "." in digits else f"{digits}.0"
