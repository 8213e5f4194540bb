"""Compares a payload with what was read back, for the codecs of validating libraries."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, cast

from .plain import Mismatch

#: The types of the most frequent values without members.
_ATOMS = frozenset([str, int, bool, bytes, type(None)])
#: Collections, which are compared member by member.
_LISTS = (list, tuple)
#: The attribute of a pydantic model for the values without a field.
_EXTRA = "__pydantic_extra__"
_MISSING = object()
#: The names of the fields of each known class; ``None`` for a class that is not a model.
_fields: dict[type, tuple[str, ...] | None] = {}


def check_unchanged(given: object, back: object) -> None:
    """Raises ``Mismatch``, with the first difference, unless a payload came back equal and with the
    same types. A subclass of a type without fields may come back as that type, for example a
    ``StrEnum`` as a ``str``."""
    kind, other = type(given), type(back)
    if kind is not other and not _may_become(given, kind, other):
        raise _changed(given, back)
    names = fields_of(other)
    if names is not None:
        _check_fields(given, back, names)
    elif isinstance(back, _LISTS):
        _check_list(cast("Sequence[Any]", given), cast("Sequence[Any]", back))
    elif isinstance(back, dict):
        _check_dict(cast("dict[Any, Any]", given), cast("dict[Any, Any]", back))
    elif not _equal(given, back):
        raise _changed(given, back)


def fields_of(kind: type[Any]) -> tuple[str, ...] | None:
    """Returns the names of the fields of a model, a dataclass or a struct; ``None`` for any other
    class."""
    try:
        return _fields[kind]
    except KeyError:
        pass
    names: tuple[str, ...] | None = None
    if hasattr(kind, "model_fields"):
        names = (*kind.model_fields, _EXTRA)
    elif dataclasses.is_dataclass(kind):
        names = tuple(field.name for field in dataclasses.fields(kind))
    elif hasattr(kind, "__struct_fields__"):
        names = tuple(getattr(kind, "__struct_fields__"))
    _fields[kind] = names
    return names


def _may_become(given: object, kind: type[Any], other: type[Any]) -> bool:
    """Returns true if a value may come back as another type, because its class is a subclass
    without fields, or because an ``int`` is a ``float``."""
    if kind is bool or other is bool or other is object or fields_of(kind) is not None:
        return False
    return isinstance(given, other) or kind is int and other is float


def _check_fields(given: Any, back: Any, names: Sequence[str]) -> None:
    _check_members(((name, getattr(given, name, _MISSING), getattr(back, name, _MISSING)) for name in names), ".{}")


def _check_list(given: Sequence[Any], back: Sequence[Any]) -> None:
    if len(given) != len(back):
        raise Mismatch(f"{len(given)} members would come back as {len(back)}")
    _check_members(((at, one, other) for at, (one, other) in enumerate(zip(given, back))), "[{}]")


def _check_dict(given: Mapping[Any, Any], back: Mapping[Any, Any]) -> None:
    for key in given:
        if key not in back:
            raise Mismatch(f"the key {_short(key)} would not come back")
    _check_members(((key, given.get(key, _MISSING), other) for key, other in back.items()), ".{}")


def _check_members(members: Iterable[tuple[Any, Any, Any]], place: str) -> None:
    """Compares members: the name of each, its value, and what came back."""
    for name, one, other in members:
        if one is other or type(one) is type(other) and type(one) in _ATOMS and one == other:
            continue  # no call is needed, because most values are like this
        try:
            check_unchanged(one, other)
        except Mismatch as mismatch:
            raise mismatch.within("" if name == _EXTRA else place.format(name)) from None


def _equal(given: Any, back: Any) -> bool:
    """Compares two values without members."""
    if given == back:
        return True
    if isinstance(given, datetime) and given.tzinfo is not None and back.tzinfo is not None:
        # A time within the hour that its zone repeats is never equal to a time of another zone.
        return bool(given.astimezone(timezone.utc) == back.astimezone(timezone.utc))
    if getattr(given.__class__, "__eq__") is object.__eq__:
        raise Mismatch(f"a {type(given).__name__} cannot be compared with what would come back: give its class an __eq__")
    return False


def _changed(given: object, back: object) -> Mismatch:
    """Returns the mismatch of two values."""
    if given is _MISSING:
        return Mismatch(f"nothing would come back as {_short(back)}")
    if back is _MISSING:
        return Mismatch(f"{_short(given)} would not come back")
    if _is_nan(given):
        return Mismatch(f"{_short(given)} cannot be stored: JSON has no NaN")
    kind = type(given)
    if type(back) is not kind and fields_of(kind) is not None:
        return Mismatch(f"a {kind.__name__} would come back as a {type(back).__name__}")
    return Mismatch(f"{_short(given)} would come back as {_short(back)}")


def _is_nan(value: object) -> bool:
    try:
        return bool(value != value)
    except Exception:
        return False


def _short(value: object) -> str:
    try:
        return f"{value!r:.50}"
    except Exception:
        return f"a {type(value).__name__}"
