"""An accepted value comes back unchanged, whatever its annotation. Other types are refused when
they are declared, and other values before they are enqueued."""

from __future__ import annotations

import dataclasses
import enum
import random
import string
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any, Literal, NewType, Optional, Sequence, TypedDict, Union
from uuid import UUID

import msgspec
import psycopg
import pydantic
import pytest
import trunkline
from trunkline.codec import codec_of
from typing_extensions import NotRequired, Required


class Colour(enum.Enum):
    RED = "red"
    BLUE = 2


class Pair(enum.Enum):
    ONE = (1, "a")
    TWO = (2, "b")


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


class Tone(str, enum.Enum):
    LOW = "low"
    HIGH = "high"


class Level(enum.IntEnum):
    ONE = 1
    TWO = 2


@dataclass
class Node:
    value: int
    next: Optional[Node] = None
    others: list[Node] = field(default_factory=list)


@dataclass
class Counted:
    """A class whose constructor changes an argument, and sets a further attribute."""

    n: int
    twice: int = field(init=False)

    def __post_init__(self) -> None:
        self.n += 1
        self.twice = 2 * self.n


@dataclass
class Mail:
    to: str
    kind: Literal["mail"] = "mail"


@dataclass
class Call:
    to: str
    kind: Literal["call"] = "call"


@dataclass
class Point:
    x: float
    y: float


@dataclass
class Place:
    x: float
    y: float


@dataclass
class WithVar:
    n: int
    more: dataclasses.InitVar[int] = 0


class Partly(TypedDict, total=False):
    a: int
    b: str


class Optionally(TypedDict):
    """A typed dictionary whose annotations are strings, as all annotations in this file."""

    a: int
    b: NotRequired[int]
    c: Annotated[NotRequired[list[Optionally]], "more"]


class Inherited(Optionally, total=False):
    d: Required[str]
    e: str


class Aliased(pydantic.BaseModel):
    to: str = pydantic.Field(alias="To")


class Computed(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    n: int

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def twice(self) -> int:
        return 2 * self.n


class Secret(pydantic.BaseModel):
    password: pydantic.SecretStr


class Excluded(pydantic.BaseModel):
    n: int = pydantic.Field(default=0, exclude=True)


class TwoNames(pydantic.BaseModel):
    n: int = pydantic.Field(validation_alias="a", serialization_alias="b")


class Base(pydantic.BaseModel):
    n: int


class Derived(Base):
    m: int = 0


class Struct(msgspec.Struct):
    n: int


Name = NewType("Name", str)
MONTH = timedelta(days=30)
KEPT: list[tuple[Any, Any]] = [
    (Literal[Colour.RED], Colour.RED), (Pair, Pair.TWO), (Rights, Rights.READ | Rights.WRITE), (Tone, Tone.LOW), (Level, Level.TWO),
    (dict[bool, int], {True: 1, False: 2}), (dict[float, int], {1e22: 1, 0.5: 2, 2**60: 3}), (dict[int, str], {-1: "a"}), (dict[Tone, int], {Tone.LOW: 1}),
    (dict[Level, int], {Level.TWO: 1}), (dict[Name, int], {Name("a"): 1}), (dict[Literal["a", 1], int], {"a": 1, 1: 2}),
    (Node, Node(1, Node(2), [Node(3)])), (Counted, Counted(3)), (Union[Mail, Call], Call("a")), (Union[Mail, Call, None], Mail("a")),
    (Partly, {"b": "x"}), (int | float, 1), (int | float, 1.0), (int | float, 1e22), (float, 2**53 + 1), (Any, 1.79e308), (Any, [1e16, -1e300, "e+1"]),
    (Decimal | int, 5), (Decimal | int, Decimal("5")), (bool | int | str | None, True), (list[int] | list[str], ["a"]), (timedelta | int, MONTH),
    (timedelta, timedelta(days=99_999, microseconds=1)), (timedelta, timedelta.min), (timedelta, timedelta.max), (datetime, datetime.max),
    (date, date(2026, 1, 2)), (time, time(1, 2, 3, 4, tzinfo=timezone(MONTH / 1000))), (frozenset[Tone], frozenset([Tone.LOW])), (Aliased, Aliased(To="a")),
    (Optionally, {"a": 1}), (Optionally, {"a": 1, "b": 2, "c": [{"a": 3}]}), (Inherited, {"a": 1, "d": "x"}), (Inherited, {"a": 1, "b": 2, "d": "", "e": "y"}),
    (Computed, Computed(n=1)), (list[Aliased], [Aliased(To="a")]), (Struct, Struct(1)), (tuple[()], ()),
]  # fmt: skip
REFUSED: list[Any] = [
    datetime | date, str | UUID, str | Decimal, Union[Point, Place], dict[Optional[str], int], WithVar, dict[UUID, int], dict[Colour, int],
    Colour | str, Literal[Tone.LOW, "low"], Literal[b"x"], list[int] | set[int], Union[dict[str, int], Mail], timedelta | float, Any | datetime,
    dict[int | str, int], list[datetime] | list[date], Secret, Excluded, TwoNames, list[Secret], Struct | Mail, complex, list[bytes],
]  # fmt: skip
NOT_OF_THE_TYPE: list[tuple[Any, Any]] = [
    (date, datetime(2026, 1, 2)), (list[int], [True]), (Point, Place(1, 2)), (Mail, Mail(3)), (dict[str, int], {1: 2}), (Partly, {"c": 1}),
    (list[str], ("a",)), (Base, Derived(n=1)), (Struct, Struct("x")), (Optionally, {"b": 1}),
    (Inherited, {"a": 1, "e": "y"}), (Inherited, {"d": "x"}), (Optional[Mail], Call("a")), (Colour, "red"), (Base, {"n": 1}),
    (dict[float, int], {2**53 + 1: 1}), (dict[float, int], {2**1024: 1}),
]  # fmt: skip


def same(one: Any, other: Any) -> bool:
    """Returns true if two values are equal and have the same types: 1 is not 1.0, and a list is not
    a tuple."""
    if type(one) is not type(other) or one != other:
        return False
    if isinstance(one, (list, tuple)):
        return all(same(a, b) for a, b in zip(one, other))
    if isinstance(one, dict):
        return all(same(value, other[key]) for key, value in one.items())
    return True


def through_postgres(url: str, texts: list[bytes]) -> list[bytes]:
    with psycopg.connect(url) as sql:
        rows = sql.execute("select one::jsonb::text from unnest(%s::text[]) one", ([text.decode() for text in texts],)).fetchall()
    return [text.encode() for (text,) in rows]


def test_accepted_values_come_back_as_they_were(url: str) -> None:
    codecs = [codec_of(of) for of, _ in KEPT]
    stored = through_postgres(url, [codec.encode(value) for codec, (_, value) in zip(codecs, KEPT)])
    back = [codec.decode(text) for codec, text in zip(codecs, stored)]
    changed = [(of, value, got) for (of, value), got in zip(KEPT, back) if not same(value, got) and not (of is float and value == got)]
    assert not changed


@pytest.mark.parametrize("of", REFUSED, ids=str)
def test_lossy_type_is_refused_at_the_declaration(of: Any) -> None:
    app = trunkline.App()
    with pytest.raises(TypeError):
        app.task(queue="refused", type=of)(lambda payload: None)
    assert not app.tasks


@pytest.mark.parametrize(("of", "value"), NOT_OF_THE_TYPE, ids=str)
def test_value_of_another_type_is_refused_before_enqueuing(of: Any, value: Any) -> None:
    with pytest.raises(trunkline.BadPayload):
        codec_of(of).encode(value)


class Maker:
    """Makes random types, and random values of these types."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)

    def type(self, depth: int = 3) -> Any:
        scalars: list[Any] = [int, str, bool, float, type(None), Decimal, UUID, datetime, date, time, timedelta, Colour, Pair, Tone, Level, Mail, Call, Counted, Node]
        if depth == 0 or self.dice.random() < 0.3:
            return self.dice.choice([*scalars, Literal["a", 1, None], Literal[Colour.BLUE, 3]])
        made = self.dice.choice(["list", "set", "tuple", "tuples", "dict", "union", "union", "sequence"])
        if made == "union":
            return Union[tuple(self.type(depth - 1) for _ in range(self.dice.randint(2, 3)))]
        if made == "dict":
            return dict[self.dice.choice([str, int, bool, float, Tone, Level]), self.type(depth - 1)]  # type: ignore[misc]
        if made == "tuple":
            return tuple[tuple(self.type(depth - 1) for _ in range(self.dice.randint(0, 3)))]  # type: ignore[misc]
        if made == "set":
            return set[self.dice.choice([int, str, Colour, date, UUID, Decimal])]  # type: ignore[misc]
        of = self.type(depth - 1)
        return {"list": list[of], "tuples": tuple[of, ...], "sequence": Sequence[of]}[made]  # type: ignore[valid-type]

    def value(self, of: Any) -> Any:
        dice, origin, inner = self.dice, getattr(of, "__origin__", None), getattr(of, "__args__", ())
        if origin is Union:
            return self.value(dice.choice(inner))
        if origin is Literal:
            return dice.choice(inner)
        count = dice.randint(0, 3)
        if origin is dict:
            return {self.value(inner[0]): self.value(inner[1]) for _ in range(count)}
        if origin is tuple and (len(inner) != 2 or inner[1] is not Ellipsis):
            return tuple(self.value(one) for one in inner)
        if origin is not None:
            members = [self.value(inner[0]) for _ in range(count)]
            return {set: set, tuple: tuple}.get(origin, list)(members)
        if issubclass(of, enum.Enum):
            return dice.choice(list(of))
        second = timedelta(microseconds=dice.randint(-(10**17), 10**17))
        return {
            int: lambda: dice.choice([0, 1, -5, 2**70]), bool: lambda: dice.random() < 0.5, type(None): lambda: None,
            str: lambda: "".join(dice.choice(string.printable + "üÿ€😀") for _ in range(dice.randint(0, 8))),
            float: lambda: dice.choice([0.0, 1.0, 0.1, -1e22, 1.5e-9, 1.79e308, dice.random() * 10 ** dice.randint(-30, 30)]),
            Decimal: lambda: Decimal(dice.randint(-(10**12), 10**12)).scaleb(-3), UUID: lambda: UUID(int=dice.getrandbits(128)),
            datetime: lambda: datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=dice.randint(0, 10**15)),
            date: lambda: date(2026, 1, 1) + timedelta(days=dice.randint(0, 9999)), time: lambda: time(dice.randint(0, 23), 5, 6, 7),
            timedelta: lambda: second, Mail: lambda: Mail(self.value(str)), Call: lambda: Call(self.value(str)),
            Counted: lambda: Counted(self.value(int)), Node: lambda: Node(self.value(int), Node(1)),
        }[of]()  # fmt: skip


def test_types_at_random_keep_their_values_or_are_refused(url: str) -> None:
    made: list[tuple[Any, Any, Any]] = []
    refused = 0
    for seed in range(3000):
        maker = Maker(seed)
        of = maker.type()
        try:
            codec = codec_of(of)
        except TypeError:
            refused += 1
            continue
        if codec.column == "jsonb":
            made.append((of, codec, maker.value(of)))
    assert len(made) > 1500 and refused > 100, (len(made), refused)
    stored = through_postgres(url, [codec.encode(value) for _, codec, value in made])
    changed = [(of, value, got) for (of, codec, value), text in zip(made, stored) if not same(value, got := codec.decode(text))]
    assert not changed, changed[:3]
