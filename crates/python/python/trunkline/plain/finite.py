"""Types with a fixed set of values: enumerations and literals, looked up by their JSON."""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Iterable
from typing import Any

from .mismatch import Mismatch, wrong
from .scalars import Check, Read
from .shape import KINDS, PLAIN, Shape, key_of
from .write import write


def in_json(value: Any, of: object) -> Any:
    """Returns the result of writing a value as JSON and reading it back."""
    try:
        return json.loads(write(value))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{of} cannot be read from JSON: {value!r} cannot be written ({error})") from None


def table(values: Iterable[Any], of: object) -> dict[object, Any]:
    """Returns the values by their JSON. Raises ``TypeError`` if two values look the same in
    JSON."""
    found: dict[object, Any] = {}
    for value in values:
        known = found.setdefault(key_of(in_json(value, of)), value)
        if known is not value and not (type(known) is type(value) and known == value):
            raise TypeError(f"{of} cannot be read from JSON: {known!r} and {value!r} look the same in JSON")
    return found


def _shapes(values: Iterable[Any], of: object, meaning: Callable[[Any], object]) -> tuple[Shape, ...]:
    kinds: dict[tuple[str, object], set[object]] = {}
    for value in values:
        found = in_json(value, of)
        kinds.setdefault((KINDS[type(found)], meaning(value)), set()).add(key_of(found))
    return tuple(Shape(kind, what, only=frozenset(only)) for (kind, what), only in kinds.items())


def enumeration(kind: type[enum.Enum]) -> tuple[Read, Check, tuple[Shape, ...]]:
    """Returns the functions that read and check members of an enumeration, and the members' shapes
    in JSON.

    Raises ``TypeError`` if a member cannot be written, or if two members look the same in JSON.
    """
    members = list(kind)
    values = table(members, kind)

    def read(value: Any) -> Any:
        found = values.get(key_of(value))
        if found is not None:
            return found
        try:
            return kind(value)  # combined flags, and unknown values that the class itself accepts
        except (ValueError, TypeError) as error:
            raise Mismatch(str(error)) from None

    def check(value: Any) -> None:
        if not isinstance(value, kind):
            raise wrong(value, f"a {kind.__name__}")

    if issubclass(kind, enum.Flag):
        return read, check, (Shape("int", kind),)
    return read, check, _shapes(members, kind, lambda _: kind)


def one_of(values: Iterable[Any], name: str) -> Check:
    """Returns a check that a value is one of ``values``, and of the same type."""
    known: set[tuple[type, Any]] = {(type(value), value) for value in values}

    def check(value: Any) -> None:
        try:
            if (type(value), value) in known:
                return
        except TypeError:
            pass  # it cannot be hashed, so it is not one of the values
        raise Mismatch(f"{name} expected, not {value!r}")

    return check


def literal(values: tuple[Any, ...]) -> tuple[Read, Check, tuple[Shape, ...]]:
    """Returns the functions that read and check the values of a literal, and the values' shapes in
    JSON. Raises ``TypeError`` like ``enumeration``."""
    name = f"one of {list(values)}"
    known = table(values, name)

    def read(value: Any) -> Any:
        try:
            return known[key_of(value)]
        except KeyError:
            raise Mismatch(f"{name} expected, not {value!r}") from None

    return read, one_of(values, name), _shapes(values, name, lambda value: type(value) if isinstance(value, enum.Enum) else PLAIN)
