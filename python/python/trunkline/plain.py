"""Values of annotated types from JSON, with the standard library alone: each is checked on its way.

For dataclasses, typed dictionaries, enumerations, unions, and lists, tuples, sets and dictionaries of them. Pydantic models and
msgspec structs are read by their own libraries.
"""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict
from uuid import UUID

Reader = Callable[[Any], Any]


class Mismatch(ValueError):
    """A value is not of its type; says where."""

    def __init__(self, what: str, path: str = "") -> None:
        super().__init__(f"at {path.lstrip('.') or 'the top'}: {what}")
        self.what = what
        self.path = path

    def within(self, step: str) -> Mismatch:
        return Mismatch(self.what, step + self.path)


def _wrong(value: object, expected: str) -> Mismatch:
    return Mismatch(f"{expected} expected, not {type(value).__name__}")


def _as_is(value: Any) -> Any:
    return value


def _exactly(kind: type, name: str) -> Reader:
    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise _wrong(value, name)
        return value

    return read


def _float(value: Any) -> float:
    if type(value) not in (int, float):
        raise _wrong(value, "a number")
    return float(value)


def _parsed(parse: Callable[[str], Any], name: str) -> Reader:
    def read(value: Any) -> Any:
        if not isinstance(value, str):
            raise _wrong(value, f"{name} as a text")
        try:
            return parse(value)
        except (ValueError, ArithmeticError) as error:
            raise Mismatch(f"{name} expected: {error}") from None

    return read


def _decimal(value: Any) -> Decimal:
    if type(value) in (int, float):
        value = str(value)
    read: Decimal = _parsed(Decimal, "a decimal number")(value)
    return read


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00") if text.endswith("Z") else text)


_scalars: dict[Any, Reader] = {
    Any: _as_is,
    object: _as_is,
    bool: _exactly(bool, "true or false"),
    int: _exactly(int, "a whole number"),
    str: _exactly(str, "a text"),
    type(None): _exactly(type(None), "null"),
    float: _float,
    Decimal: _decimal,
    UUID: _parsed(UUID, "a UUID"),
    datetime: _parsed(_instant, "a time"),
    date: _parsed(date.fromisoformat, "a date"),
    time: _parsed(time.fromisoformat, "a time of day"),
    timedelta: lambda value: timedelta(seconds=_float(value)),
    list: _exactly(list, "a list"),
    dict: _exactly(dict, "an object"),
}


def _each(read: Reader, make: Callable[[list[Any]], Any]) -> Reader:
    def read_all(value: Any) -> Any:
        if not isinstance(value, list):
            raise _wrong(value, "a list")
        members = typing.cast("list[Any]", value)
        made: list[Any] = []
        for at, member in enumerate(members):
            try:
                made.append(read(member))
            except Mismatch as mismatch:
                raise mismatch.within(f"[{at}]") from None
        return make(made)

    return read_all


def _tuple(members: Sequence[Reader]) -> Reader:
    def read(value: Any) -> Any:
        found: list[Any] = _each(_as_is, list)(value)
        if len(found) != len(members):
            raise Mismatch(f"a list of {len(members)} expected, not of {len(found)}")
        return tuple(each(one) for each, one in zip(members, found))

    return read


def _fields(
    readers: Mapping[str, Reader], required: frozenset[str], make: Callable[..., Any], name: str
) -> Reader:
    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _wrong(value, f"an object for {name}")
        values = typing.cast("dict[str, Any]", value)
        missing = sorted(required - values.keys())
        if missing:
            raise Mismatch(f"{name} has no {', '.join(missing)}")
        made: dict[str, Any] = {}
        for field, member in values.items():
            reader = readers.get(field)
            if reader is None:
                continue  # of a newer program
            try:
                made[field] = reader(member)
            except Mismatch as mismatch:
                raise mismatch.within(f".{field}") from None
        return make(**made)

    return read


def _mapping(key: Reader, member: Reader) -> Reader:
    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _wrong(value, "an object")
        values = typing.cast("dict[str, Any]", value)
        made: dict[Any, Any] = {}
        for name, one in values.items():
            try:
                made[key(name)] = member(one)
            except Mismatch as mismatch:
                raise mismatch.within(f".{name}") from None
        return made

    return read


def _whole_key(name: str) -> int:
    try:
        return int(name)
    except ValueError:
        raise Mismatch("a whole number as the key expected") from None


def _any_of(readers: Sequence[Reader], name: str) -> Reader:
    def read(value: Any) -> Any:
        whys: list[str] = []
        for reader in readers:
            try:
                return reader(value)
            except Mismatch as mismatch:
                whys.append(str(mismatch))
        raise Mismatch(f"{name} expected ({'; '.join(whys)})")

    return read


def _optional(read: Reader) -> Reader:
    return lambda value: None if value is None else read(value)


def _one_of(values: Sequence[Any]) -> Reader:
    def read(value: Any) -> Any:
        for one in values:
            if type(one) is type(value) and one == value:
                return one
        raise Mismatch(f"one of {list(values)} expected, not {value!r}")

    return read


def _member(kind: type[enum.Enum]) -> Reader:
    def read(value: Any) -> Any:
        try:
            return kind(value)
        except ValueError as error:
            raise Mismatch(str(error)) from None

    return read


@lru_cache(maxsize=None)
def reader(of: Any) -> Reader:
    """What reads values of a type from JSON. A type that cannot be read raises a ``TypeError`` now."""
    if of in _scalars:
        return _scalars[of]
    if isinstance(of, typing.NewType):
        return reader(of.__supertype__)
    origin, arguments = get_origin(of), get_args(of)
    if origin is typing.Annotated:
        return reader(arguments[0])
    if origin in (Union, types.UnionType):
        others = [one for one in arguments if one is not type(None)]
        if len(others) == 1:
            return _optional(reader(others[0]))
        return _any_of([reader(one) for one in arguments], str(of))
    if origin is Literal:
        return _one_of(arguments)
    if origin is list or origin in (Sequence, typing.Sequence):
        return _each(reader(arguments[0]), list)
    if origin is set or origin is frozenset:
        return _each(reader(arguments[0]), origin)
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return _each(reader(arguments[0]), tuple)
        return _tuple([reader(one) for one in arguments])
    if origin is dict or origin in (Mapping, typing.Mapping):
        key = _whole_key if arguments[0] is int else reader(arguments[0])
        return _mapping(key, reader(arguments[1]))
    if isinstance(of, type):
        kind: type[Any] = of
        if issubclass(kind, enum.Enum):
            return _member(kind)
        if dataclasses.is_dataclass(kind):
            return _dataclass(kind)
        if is_typeddict(kind):
            hints = get_type_hints(kind)
            required: frozenset[str] = getattr(kind, "__required_keys__")
            return _fields({name: reader(hint) for name, hint in hints.items()}, required, dict, kind.__name__)
    raise TypeError(
        f"payloads of type {of!r} cannot be read from JSON: use a dataclass, a pydantic model, a msgspec struct, "
        "types of JSON, or a codec of your own"
    )


def _dataclass(of: type[Any]) -> Reader:
    hints = get_type_hints(of)
    fields = [field for field in dataclasses.fields(of) if field.init]
    nothing = dataclasses.MISSING
    required = frozenset(f.name for f in fields if f.default is nothing and f.default_factory is nothing)
    readers = {field.name: _later(hints[field.name]) for field in fields}
    return _fields(readers, required, of, of.__name__)


def _later(of: Any) -> Reader:
    """A type that may contain itself."""

    def read(value: Any) -> Any:
        return reader(of)(value)

    may_be_within = bool(get_args(of)) or dataclasses.is_dataclass(of)
    return read if may_be_within else reader(of)


def writable(value: Any) -> object:
    """What JSON has no form of its own for."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, (UUID, Decimal)):
        return str(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (set, frozenset)):
        return list(typing.cast("set[Any]", value))
    raise TypeError(f"a {type(value).__name__} has no form in JSON")
