"""The shapes that a type has in JSON, and whether two types can be told apart by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

#: The meaning of JSON's own values: a text is read as a text.
PLAIN = "plain"
#: The kinds of JSON's values by Python's types of them.
KINDS: dict[type, str] = {type(None): "null", bool: "bool", int: "int", float: "float", str: "text", list: "list", dict: "object"}


@dataclass(frozen=True)
class Fields:
    """The names in an object: all, those that are always there, and of some of these the only values."""

    names: frozenset[str]
    required: frozenset[str]
    tags: Mapping[str, frozenset[object]] = field(default_factory=dict[str, "frozenset[object]"])


@dataclass(frozen=True)
class Shape:
    """One kind of JSON that a type is written in, and what is made of it: two of one kind and one meaning are read alike."""

    kind: str
    meaning: object = PLAIN
    #: The only values, where there are few.
    only: frozenset[object] | None = None
    #: The shapes of members, by place.
    members: tuple[tuple[Shape, ...], ...] = ()
    fields: Fields | None = None


ANY = (Shape("any"),)


def can_be_confused(one: Sequence[Shape], other: Sequence[Shape]) -> bool:
    """Whether a value of one type may be read as another value of the other."""
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
    """By the values of a field that both have, or because each has one that the other does not know and cannot do without."""
    for name, values in a.tags.items():
        if name in b.tags and values.isdisjoint(b.tags[name]):
            return True
    return bool(a.required - b.names) and bool(b.required - a.names)


def key_of(value: object) -> object:
    """A value from JSON, to look up: 1, 1.0 and true are three."""
    if isinstance(value, (list, dict)):
        import json

        return json.dumps(value, sort_keys=True)
    return type(value), value
