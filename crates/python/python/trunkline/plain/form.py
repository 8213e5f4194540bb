"""The form of a type in JSON: its reader, its check and its shapes."""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin, is_typeddict

from .classes import class_form
from .finite import enumeration, literal
from .keys import key_form
from .mismatch import Mismatch, wrong
from .scalars import SCALARS, Check, Read, as_is, instance
from .shape import ANY, KINDS, Shape, can_be_confused


@dataclass
class Form:
    """The function that reads a type from JSON, the check before a value is written, and the type's
    shapes in JSON."""

    read: Read
    check: Check
    shapes: tuple[Shape, ...]


_known: dict[Any, Form] = {}


def form(of: Any) -> Form:
    """Returns the form of a type. Raises a ``TypeError`` if some values of the type would not come
    back unchanged."""
    try:
        return _known[of]
    except (KeyError, TypeError):
        made = _Maker().make(of)
    try:
        _known[of] = made
    except TypeError:
        pass  # the type cannot be hashed
    return made


class _Maker:
    """Makes the form of a type and of all types within it. The type may contain itself."""

    def __init__(self) -> None:
        self._begun: dict[Any, Form] = {}

    def make(self, of: Any) -> Form:
        if of is Any or of is object:
            return Form(as_is, as_is, ANY)
        try:
            if of in SCALARS:
                return Form(*SCALARS[of])
        except TypeError:
            pass  # the type cannot be hashed
        if isinstance(of, typing.NewType):
            return self.make(of.__supertype__)
        origin, arguments = get_origin(of), get_args(of)
        if origin is typing.Annotated:
            return self.make(arguments[0])
        if type(of).__name__ == "TypeAliasType":
            return self._once(of, ANY, lambda: self.make(of.__value__))
        if origin in (Union, types.UnionType):
            return self._union(of, arguments)
        if origin is Literal:
            return Form(*literal(arguments))
        if origin is list or origin in (Sequence, typing.Sequence):
            takes = instance(list, "a list") if origin is list else instance((list, tuple), "a list")
            return self._each(arguments[0], list, takes)
        if origin is set or origin is frozenset:
            return self._each(arguments[0], origin, instance(origin, f"a {origin.__name__}"))
        if origin is tuple:
            if len(arguments) == 2 and arguments[1] is Ellipsis:
                return self._each(arguments[0], tuple, instance(tuple, "a tuple"))
            return self._tuple([self.make(one) for one in arguments])
        if origin is dict or origin in (Mapping, typing.Mapping):
            return self._mapping(arguments[0], self.make(arguments[1]))
        if isinstance(of, type):
            kind: type[Any] = of
            if issubclass(kind, enum.Enum):
                return Form(*enumeration(kind))
            if dataclasses.is_dataclass(kind) or is_typeddict(kind):
                shape, complete = class_form(kind)
                return self._once(kind, (shape,), lambda: Form(*complete(self.make), (shape,)))
        raise TypeError(
            f"payloads of type {of!r} cannot be read from JSON: use a dataclass, a pydantic model, a msgspec struct, "
            "types of JSON, or your own codec"
        )

    def _once(self, of: Any, shapes: tuple[Shape, ...], make: Callable[[], Form]) -> Form:
        """Makes the form of a type that may contain itself. Inside the type, a placeholder
        represents the form until the form is complete."""
        begun = self._begun.get(of)
        if begun is not None:
            known = begun
            return Form(lambda value: known.read(value), lambda value: known.check(value), known.shapes)
        begun = self._begun[of] = Form(as_is, as_is, shapes)
        made = make()
        begun.read, begun.check, begun.shapes = made.read, made.check, made.shapes
        return begun

    def _each(self, member: Any, make: Any, takes: Check) -> Form:
        inner = self.make(member)
        each, check_each = inner.read, inner.check

        def read(value: Any) -> Any:
            if not isinstance(value, list):
                raise wrong(value, "a list")
            return make(_walked(each, typing.cast("list[Any]", value)))

        def check(value: Any) -> None:
            takes(value)
            _walked(check_each, value)

        return Form(read, check, (Shape("list", make, members=(inner.shapes,)),))

    def _tuple(self, members: list[Form]) -> Form:
        count = len(members)

        def all_of(value: Any, each: Sequence[Read]) -> tuple[Any, ...]:
            if len(value) != count:
                raise Mismatch(f"a list of {count} expected, not of {len(value)}")
            found: list[Any] = []
            for at, (one, member) in enumerate(zip(each, value)):
                try:
                    found.append(one(member))
                except Mismatch as mismatch:
                    raise mismatch.within(f"[{at}]") from None
            return tuple(found)

        def read(value: Any) -> tuple[Any, ...]:
            if not isinstance(value, list):
                raise wrong(value, "a list")
            return all_of(value, [one.read for one in members])

        def check(value: Any) -> None:
            if not isinstance(value, tuple):
                raise wrong(value, "a tuple")
            all_of(value, [one.check for one in members])

        return Form(read, check, (Shape("list", "tuple", members=tuple(one.shapes for one in members)),))

    def _mapping(self, key: Any, member: Form) -> Form:
        read_key, check_key, key_shape = key_form(key)
        read_member, check_member = member.read, member.check

        def read(value: Any) -> Any:
            if not isinstance(value, dict):
                raise wrong(value, "an object")
            made: dict[Any, Any] = {}
            for name, one in typing.cast("dict[str, Any]", value).items():
                try:
                    made[read_key(name)] = read_member(one)
                except Mismatch as mismatch:
                    raise mismatch.within(f".{name}") from None
            return made

        def check(value: Any) -> None:
            if not isinstance(value, dict):
                raise wrong(value, "a dict")
            for name, one in typing.cast("dict[Any, Any]", value).items():
                try:
                    check_key(name)
                    check_member(one)
                except Mismatch as mismatch:
                    raise mismatch.within(f".{name}") from None

        return Form(read, check, (Shape("object", dict, members=((key_shape,), member.shapes)),))

    def _union(self, of: Any, arguments: Sequence[Any]) -> Form:
        forms = [self.make(one) for one in arguments]
        for at, one in enumerate(forms):
            for before, other in enumerate(forms[:at]):
                if can_be_confused(one.shapes, other.shapes):
                    raise TypeError(
                        f"{of} cannot be read from JSON: a value of {_name(arguments[at])} may look like one of {_name(arguments[before])}. Use only "
                        "one of these types, or dataclasses with a field as a tag, such as kind: Literal['mail'] = 'mail'"
                    )
        if len(forms) == 2 and type(None) in arguments:
            (inner,) = [one for one, argument in zip(forms, arguments) if argument is not type(None)]
            return Form(_optional(inner.read), _optional(inner.check), sum((one.shapes for one in forms), ()))
        # Types that write this kind of JSON are tried first. Other types may also be able to read
        # it: for example, a Decimal reads a number that an SQL statement wrote.
        by_kind = {
            kind: [one.read for one in sorted(forms, key=lambda one: all(shape.kind not in (kind, "any") for shape in one.shapes))]
            for kind in KINDS.values()
        }
        checks = [one.check for one in forms]

        def read(value: Any) -> Any:
            return _first(by_kind[KINDS[type(value)]], value, of)

        def check(value: Any) -> None:
            _first(checks, value, of)

        return Form(read, check, sum((one.shapes for one in forms), ()))


def _name(of: Any) -> str:
    return of.__name__ if isinstance(of, type) else str(of)


def _walked(each: Read, members: Sequence[Any]) -> list[Any]:
    made: list[Any] = []
    for at, member in enumerate(members):
        try:
            made.append(each(member))
        except Mismatch as mismatch:
            raise mismatch.within(f"[{at}]") from None
    return made


def _optional(of: Read) -> Read:
    return lambda value: None if value is None else of(value)


def _first(of: Sequence[Read], value: Any, name: object) -> Any:
    whys: list[str] = []
    for one in of:
        try:
            return one(value)
        except Mismatch as mismatch:
            whys.append(str(mismatch))
    raise Mismatch(f"{name} expected ({'; '.join(whys)})")
