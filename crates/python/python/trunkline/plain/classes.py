"""Dataclasses and typed dictionaries."""

from __future__ import annotations

import dataclasses
import enum
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal, cast, get_args, get_origin, get_type_hints, is_typeddict

from .finite import table
from .mismatch import Mismatch, wrong
from .scalars import Check, Read
from .shape import Fields, Shape

#: Makes the functions that read and check a class, from a function that makes the forms of its
#: fields.
Complete = Callable[[Callable[[Any], Any]], tuple[Read, Check]]


def class_form(of: type[Any]) -> tuple[Shape, Complete]:
    """Returns the shape of a class, and a function that makes the rest later, because the class may
    contain itself."""
    try:
        hints = {name: _qualified(hint)[1] for name, hint in _hints(of).items()}
    except NameError as error:
        raise TypeError(f"the annotations of {of.__qualname__} cannot be read from JSON: {error}") from None
    if is_typeddict(of):
        required = _required(of)
        shape = Shape("object", of, fields=Fields(frozenset(hints), required, _tags(hints, required)))
        return shape, lambda make: _typed_dict(of, _made(of, hints, make), required)
    fields = _fields(of)
    names = {field.name for field in fields}
    hints = {name: hint for name, hint in hints.items() if name in names}
    nothing = dataclasses.MISSING
    required = frozenset(f.name for f in fields if f.init and f.default is nothing and f.default_factory is nothing)
    shape = Shape("object", of, fields=Fields(frozenset(names), required, _tags(hints, frozenset(names))))
    return shape, lambda make: _dataclass(of, fields, _made(of, hints, make), required)


def _hints(of: type[Any]) -> dict[str, Any]:
    return get_type_hints(of, localns={of.__name__: of}, include_extras=True)


def _qualified(hint: Any) -> tuple[bool | None, Any]:
    """Returns true for ``Required``, false for ``NotRequired``, otherwise ``None``, and the type
    without these and other qualifiers."""
    required: bool | None = None
    inner = hint
    while (origin := get_origin(inner)) is not None:
        name = getattr(origin, "_name", None) or getattr(origin, "__name__", None)
        if name in ("Required", "NotRequired"):
            required = name == "Required"
        elif name != "ReadOnly" and origin is not Annotated:
            break
        inner = get_args(inner)[0]
    return required, inner


def _required(of: type[Any]) -> frozenset[str]:
    """Returns the required keys of a typed dictionary. ``__required_keys__`` ignores ``Required``
    and ``NotRequired`` in annotations that are strings."""
    required: set[str] = set(getattr(of, "__required_keys__"))
    for name, hint in _hints(of).items():
        said = _qualified(hint)[0]
        if said is not None:
            (required.add if said else required.discard)(name)
    return frozenset(required)


def _fields(of: type[Any]) -> tuple[dataclasses.Field[Any], ...]:
    fields = dataclasses.fields(of)
    all_of: Mapping[str, Any] = getattr(of, "__dataclass_fields__")
    for name, field in all_of.items():
        if getattr(field, "_field_type") is getattr(dataclasses, "_FIELD_INITVAR"):
            raise TypeError(f"{of.__qualname__} cannot be read from JSON: {name} is an InitVar, which no instance keeps; make it a field")
    try:
        inspect.signature(of).bind(**{field.name: None for field in fields if field.init})
    except TypeError as error:
        raise TypeError(f"{of.__qualname__} cannot be read from JSON: it cannot be constructed from its fields ({error})") from None
    return fields


def _tags(hints: Mapping[str, Any], always: frozenset[str]) -> dict[str, frozenset[object]]:
    """Returns the fields that are always present and have a fixed set of values."""
    tags: dict[str, frozenset[object]] = {}
    for name in always:
        hint = hints[name]
        if get_origin(hint) is Literal:
            tags[name] = frozenset(table(get_args(hint), hint))
        elif isinstance(hint, enum.EnumMeta) and not issubclass(hint, enum.Flag):
            tags[name] = frozenset(table(cast("Iterable[Any]", hint), cast("object", hint)))
    return tags


def _made(of: type[Any], hints: Mapping[str, Any], make: Callable[[Any], Any]) -> dict[str, Any]:
    forms: dict[str, Any] = {}
    for name, hint in hints.items():
        try:
            forms[name] = make(hint)
        except TypeError as error:
            raise TypeError(f"{of.__qualname__}.{name}: {error}") from None
    return forms


def _reader(of: type[Any], forms: Mapping[str, Any], required: frozenset[str]) -> Callable[[Any], dict[str, Any]]:
    readers, name_of = {name: form.read for name, form in forms.items()}, of.__name__

    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise wrong(value, f"an object for {name_of}")
        values = cast("dict[str, Any]", value)
        if missing := required - values.keys():
            raise Mismatch(f"{name_of} has no {', '.join(sorted(missing))}")
        made: dict[str, Any] = {}
        for field, member in values.items():
            reader = readers.get(field)
            if reader is None:
                continue  # a newer program wrote it
            try:
                made[field] = reader(member)
            except Mismatch as mismatch:
                raise mismatch.within(f".{field}") from None
        return made

    return read


def _dataclass(
    of: type[Any], fields: tuple[dataclasses.Field[Any], ...], forms: Mapping[str, Any], required: frozenset[str]
) -> tuple[Read, Check]:
    fields_of, checks = _reader(of, forms, required), [(name, form.check) for name, form in forms.items()]
    made_later = [field.name for field in fields if not field.init]
    # Fields that are set after the constructor have the values that they had when the object was
    # written.
    again = [field.name for field in fields] if hasattr(of, "__post_init__") else made_later

    def read(value: Any) -> Any:
        found = fields_of(value)
        made = of(**{name: one for name, one in found.items() if name not in made_later} if made_later else found)
        for name in again:
            if name in found:
                object.__setattr__(made, name, found[name])
        return made

    def check(value: Any) -> None:
        if type(value) is not of:
            raise wrong(value, f"a {of.__name__}")
        for name, check_field in checks:
            try:
                check_field(getattr(value, name))
            except Mismatch as mismatch:
                raise mismatch.within(f".{name}") from None
            except AttributeError:
                raise Mismatch(f"{of.__name__} has no {name}") from None

    return read, check


def _typed_dict(of: type[Any], forms: Mapping[str, Any], required: frozenset[str]) -> tuple[Read, Check]:
    checks = {name: form.check for name, form in forms.items()}

    def check(value: Any) -> None:
        if not isinstance(value, dict):
            raise wrong(value, f"a dict for {of.__name__}")
        values = cast("dict[Any, Any]", value)
        if missing := required - values.keys():
            raise Mismatch(f"{of.__name__} has no {', '.join(sorted(missing))}")
        for name, member in values.items():
            if name not in checks:
                raise Mismatch(f"{of.__name__} has no key {name!r}, so it would not come back")
            try:
                checks[name](member)
            except Mismatch as mismatch:
                raise mismatch.within(f".{name}") from None

    return _reader(of, forms, required), check
