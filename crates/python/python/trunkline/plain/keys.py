"""Keys of dictionaries, which are strings in JSON."""

from __future__ import annotations

import enum
import json
import typing
from typing import Any, Literal, get_args, get_origin

from .finite import one_of
from .mismatch import Mismatch
from .scalars import SCALARS, Check, Read, as_is, instance
from .shape import Shape
from .write import write

_BOOLS = {"true": True, "false": False}
_is_number = instance((int, float), "a number as the key", but=bool)


def key_form(of: Any) -> tuple[Read, Check, Shape]:
    """Returns the reader, the check and the shape of a key. Supports the types that Python writes
    as strings from which it can read the key back."""
    if of is str or of is Any or of is object:
        return as_is, SCALARS[str][1] if of is str else as_is, Shape("text")
    if isinstance(of, typing.NewType):
        return key_form(of.__supertype__)
    if get_origin(of) is typing.Annotated:
        return key_form(get_args(of)[0])
    if of is int:
        return _whole, SCALARS[int][1], Shape("text", int)
    if of is float:
        return _number, _check_number, Shape("text", float)
    if of is bool:
        return _one_of(dict[str, Any](_BOOLS), "true or false"), SCALARS[bool][1], Shape("text", bool, only=frozenset(_BOOLS))
    if get_origin(of) is Literal:
        return _finite(get_args(of), of)
    if isinstance(of, type) and issubclass(of, enum.Enum):
        return _finite(tuple(of), of)
    raise TypeError(f"keys of type {of} cannot be read from JSON, where keys are strings: use str, int, float, bool, an enumeration of these, or a list of pairs")


def _finite(values: tuple[Any, ...], of: object) -> tuple[Read, Check, Shape]:
    names: dict[str, Any] = {}
    for value in values:
        try:
            (name,) = json.loads(write({value: None}))
        except (TypeError, ValueError):
            raise TypeError(f"keys of type {of} cannot be read from JSON: {value!r} cannot be written as a key; use an enumeration of str or int") from None
        if name in names or value is None:
            raise TypeError(f"keys of type {of} cannot be read from JSON: in JSON, {value!r} looks like another key")
        names[name] = value

    return _one_of(names, str(of)), one_of(values, f"a key of {of}"), Shape("text", of, only=frozenset(names))


def _one_of(names: dict[str, Any], what: str) -> Read:
    def read(name: str) -> Any:
        try:
            return names[name]
        except KeyError:
            raise Mismatch(f"{what} as the key expected") from None

    return read


def _whole(name: str) -> int:
    try:
        if str(number := int(name)) == name:
            return number
    except ValueError:
        pass
    raise Mismatch("a whole number as the key expected")


def _check_number(key: Any) -> None:
    _is_number(key)
    try:
        is_exact = float(key) == key
    except OverflowError:
        is_exact = False
    if not is_exact:  # the number would come back as another key
        raise Mismatch("a number that a float can represent expected as the key")


def _number(name: str) -> float:
    try:
        return float(name)
    except ValueError:
        raise Mismatch("a number as the key expected") from None
