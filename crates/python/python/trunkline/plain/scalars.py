"""Types that contain no other types."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from .mismatch import Mismatch, wrong
from .shape import PLAIN, Shape

#: A function that reads a value from JSON, and one that checks, before a value is written, that it
#: can be read back.
Read = Callable[[Any], Any]
Check = Callable[[Any], object]


def as_is(value: Any) -> Any:
    """Returns the value unchanged."""
    return value


def exactly(kind: type, name: str) -> Read:
    """Returns a function that reads values of exactly one class. It raises ``Mismatch`` for other
    values, including those of subclasses."""

    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise wrong(value, name)
        return value

    return read


def instance(kind: type | tuple[type, ...], name: str, but: type | None = None) -> Check:
    """Returns a check that accepts instances of ``kind``, except instances of ``but``, and raises
    ``Mismatch`` for other values."""

    def check(value: Any) -> None:
        if not isinstance(value, kind) or but is not None and isinstance(value, but):
            raise wrong(value, name)

    return check


def _float(value: Any) -> Any:
    if type(value) not in (int, float):
        raise wrong(value, "a number")
    try:
        number = float(value)
    except OverflowError:
        return value
    return number if number == value else value  # a large int is not exact as a float


def _parsed(parse: Callable[[str], Any], name: str) -> Read:
    def read(value: Any) -> Any:
        if not isinstance(value, str):
            raise wrong(value, f"{name} as a string")
        try:
            return parse(value)
        except (ValueError, ArithmeticError) as error:
            raise Mismatch(f"{name} expected: {error}") from None

    return read


_decimal_text = _parsed(Decimal, "a decimal number")


def _decimal(value: Any) -> Any:
    return _decimal_text(str(value) if type(value) in (int, float) else value)


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00") if text.endswith("Z") else text)


def _duration(value: Any) -> timedelta:
    try:
        if isinstance(value, str):
            return timedelta(microseconds=int(Decimal(value).scaleb(6)))
        return timedelta(seconds=_float(value))
    except (ValueError, ArithmeticError) as error:
        if isinstance(error, Mismatch):
            raise
        raise Mismatch(f"a duration in seconds expected: {error}") from None


def _text_of(kind: type) -> tuple[Shape, ...]:
    return (Shape("text", kind),)


SCALARS: dict[Any, tuple[Read, Check, tuple[Shape, ...]]] = {
    bool: (exactly(bool, "true or false"), exactly(bool, "a bool"), (Shape("bool"),)),
    int: (exactly(int, "a whole number"), instance(int, "a whole number", but=bool), (Shape("int"),)),
    str: (exactly(str, "a string"), instance(str, "a string"), (Shape("text"),)),
    type(None): (exactly(type(None), "null"), exactly(type(None), "None"), (Shape("null"),)),
    float: (_float, instance((int, float), "a number", but=bool), (Shape("float"),)),
    Decimal: (_decimal, instance(Decimal, "a Decimal"), _text_of(Decimal)),
    UUID: (_parsed(UUID, "a UUID"), instance(UUID, "a UUID"), _text_of(UUID)),
    datetime: (_parsed(_instant, "a time"), instance(datetime, "a datetime"), _text_of(datetime)),
    # In Python a datetime is a date, but its text cannot be read as a date.
    date: (_parsed(date.fromisoformat, "a date"), instance(date, "a date", but=datetime), _text_of(date)),
    time: (_parsed(time.fromisoformat, "a time of day"), instance(time, "a time of day"), _text_of(time)),
    timedelta: (_duration, instance(timedelta, "a timedelta"), (Shape("float", timedelta), Shape("text", timedelta))),
    list: (exactly(list, "a list"), instance(list, "a list"), (Shape("list", list, members=((Shape("any", PLAIN),),)),)),
    dict: (exactly(dict, "an object"), instance(dict, "a dict"), (Shape("object", dict, members=((Shape("text"),), (Shape("any", PLAIN),))),)),
}
