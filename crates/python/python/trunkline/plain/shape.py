"""The shapes that a type has in JSON, by which two types can be distinguished."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

#: The meaning of JSON's own values: a string is read as a string.
PLAIN = "plain"
#: The kinds of JSON values, by their types in Python.
KINDS: dict[type, str] = {type(None): "null", bool: "bool", int: "int", float: "float", str: "text", list: "list", dict: "object"}


@dataclass(frozen=True)
class Fields:
    """The fields of an object: all names, the required names, and the possible values of some
    required fields."""

    names: frozenset[str]
    required: frozenset[str]
    tags: Mapping[str, frozenset[object]] = field(default_factory=dict[str, "frozenset[object]"])


@dataclass(frozen=True)
class Shape:
    """A kind of JSON in which a type is written, and its meaning. Shapes of the same kind and
    meaning are read in the same way."""

    kind: str
    meaning: object = PLAIN
    #: The possible values, if they are a fixed set.
    only: frozenset[object] | None = None
    #: The shapes of members, by position.
    members: tuple[tuple[Shape, ...], ...] = ()
    fields: Fields | None = None


ANY = (Shape("any"),)


def can_be_confused(one: Sequence[Shape], other: Sequence[Shape]) -> bool:
    """Returns true if a value of one type could be read as a different value of the other type."""
    return any(_clash(a, b) for a in one for b in other)


def _clash(a: Shape, b: Shape) -> bool:
    if "any" in (a.kind, b.kind):
        other = b if a.kind == "any" else a
        return not (other.kind == "any" or other.meaning == PLAIN)
    if a.kind != b.kind or a.only is not None and b.only is not None and a.only.isdisjoint(b.only):
        return False
    if a.fields is not None and b.fields is not None:
        return not _are_apart(a.fields, b.fields)
    if a.meaning != b.meaning:
        return True
    if len(a.members) != len(b.members):
        return False  # tuples of two lengths
    return any(can_be_confused(one, other) for one, other in zip(a.members, b.members))


def _are_apart(a: Fields, b: Fields) -> bool:
    """Returns true if two objects can be distinguished, either by the values of a common field, or
    because each requires a field that the other lacks."""
    for name, values in a.tags.items():
        if name in b.tags and values.isdisjoint(b.tags[name]):
            return True
    return bool(a.required - b.names) and bool(b.required - a.names)


def key_of(value: object) -> object:
    """Returns a hashable key for a value from JSON. 1, 1.0 and true have different keys."""
    if isinstance(value, (list, dict)):
        import json

        return json.dumps(value, sort_keys=True)
    return type(value), value
