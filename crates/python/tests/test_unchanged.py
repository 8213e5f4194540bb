"""A model or a struct comes back unchanged, or is refused with the place of the difference."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any, Optional
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import psycopg
import pydantic
import pytest
import trunkline
from pydantic.dataclasses import dataclass as checked_dataclass
from trunkline.codec import codec_of

NAN, INFINITE = float("nan"), float("inf")


class Tone(str, enum.Enum):
    LOW = "low"


class Anything(pydantic.BaseModel):
    it: Any = None


class Number(pydantic.BaseModel):
    it: Optional[float] = None


class Written(pydantic.BaseModel):
    """A model that writes NaN as a name that is not JSON."""

    model_config = pydantic.ConfigDict(ser_json_inf_nan="constants")
    it: float


class Named(pydantic.BaseModel):
    """A model that writes infinities as strings, and reads them back."""

    model_config = pydantic.ConfigDict(ser_json_inf_nan="strings")
    it: float


class Base(pydantic.BaseModel):
    n: int = 1


class Derived(Base):
    m: int = 2


class Holder(pydantic.BaseModel):
    one: Base
    many: list[Base] = []
    by_name: dict[str, Base | None] = {}


class Louder(pydantic.BaseModel):
    """A model whose validator changes its own result."""

    text: str

    @pydantic.field_validator("text")
    @classmethod
    def louder(cls, text: str) -> str:
        return text + "!"


class Extended(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    n: int


class Wide(pydantic.BaseModel):
    tone: Tone
    text: str
    at: datetime
    price: Decimal
    id: UUID
    number: int | float
    names: frozenset[str]
    pair: tuple[int, str]
    by_number: dict[int, list[Base]]


class Rooted(pydantic.RootModel[list[int]]):
    pass


@checked_dataclass
class Checked:
    n: int
    inner: Base | None = None


@checked_dataclass
class CheckedFurther(Checked):
    m: int = 0


@checked_dataclass
class Secret:
    password: pydantic.SecretStr = pydantic.SecretStr("")


@checked_dataclass
class Excluded:
    n: int = pydantic.Field(default=0, exclude=True)


@checked_dataclass(config=pydantic.ConfigDict(extra="allow"))
class Allowing:
    n: int = 0


class Struct(msgspec.Struct):
    it: Any = None
    number: float | None = None


class FurtherStruct(Struct):
    m: int = 0


class StructHolder(msgspec.Struct):
    one: Struct
    names: list[str] = []


@dataclass
class Without:
    """A dataclass, which comes back as a dictionary where no annotation names it."""

    n: int


NIGHT = datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin"))
WIDE = Wide(
    tone=Tone.LOW, text=Tone.LOW, at=NIGHT, price=Decimal("1.10"), id=UUID(int=7), number=1e22, names=frozenset("ab"), pair=(1, "x"),
    by_number={1: [Base(n=2)]},
)  # fmt: skip
KEPT: list[tuple[Any, Any]] = [
    (Wide, WIDE), (Wide, WIDE.model_copy(update={"number": 3})), (Anything, Anything(it=[1, {"a": None}, 1e300])), (Rooted, Rooted([1, 2])),
    (Holder, Holder(one=Base(), many=[Base(n=5)], by_name={"a": None, "b": Base()})), (list[Base], [Base()]), (Optional[Base], None),
    (Extended, Extended(n=1, m=[2])), (Checked, Checked(1, Base())), (Named, Named(it=INFINITE)), (Struct, Struct("3e5 and NaN", 1e22)),
    (StructHolder, StructHolder(Struct([1, "a"]), ["x"])), (list[Struct], [Struct()]), (Struct, Struct(number=3)),
]  # fmt: skip
CHANGED: list[tuple[Any, Any, str]] = [
    (Number, Number(it=NAN), "at it: nan cannot be stored"), (Number, Number(it=INFINITE), "at it: inf would come back as None"),
    (Written, Written(it=NAN), "NaN cannot be stored"), (Written, Written(it=-INFINITE), "-Infinity cannot be stored"),
    (Named, Named(it=NAN), "at it: nan cannot be stored"), (Struct, Struct(number=NAN), "at number: nan"), (Struct, Struct(INFINITE), "at it: inf"),
    (Anything, Anything(it=(1, 2)), r"at it: \(1, 2\) would come back as \[1, 2\]"), (Anything, Anything(it={1: 2}), "at it: the key 1 would not"),
    (Anything, Anything(it=[datetime(2026, 1, 2)]), r"at it\[0\]: datetime.* would come back as '2026"),
    (Holder, Holder(one=Derived()), "at one: a Derived would come back as a Base"), (Optional[Base], Derived(), "a Derived would come back as a Base"),
    (Holder, Holder(one=Base(), many=[Base(), Derived()]), r"at many\[1\]: a Derived"), (list[Base], [Derived()], r"at \[0\]: a Derived"),
    (Holder, Holder(one=Base(), by_name={"a": Derived()}), "at by_name.a: a Derived"), (dict[str, Base], {"a": Derived()}, "at a: a Derived"),
    (Louder, Louder(text="a"), "at text: 'a!' would come back as 'a!!'"), (Checked, CheckedFurther(1), "a Checked is expected"),
    (Checked, Checked(1, Derived()), "at inner: a Derived"), (list[Checked], [CheckedFurther(1)], r"at \[0\]: a CheckedFurther"),
    (StructHolder, StructHolder(FurtherStruct()), "at one: a FurtherStruct"), (list[Struct], [FurtherStruct()], r"at \[0\]: a FurtherStruct"),
    (StructHolder, StructHolder(Struct(), ("a",)), "at names: "), (Extended, Extended(n=1, m=(2,)), r"at m: \(2,\) would"),  # type: ignore[arg-type]
    (Base, Base.model_construct(n=True), "at n: True would come back as 1"), (Base, Base(n=1).model_copy(update={"n": "x"}), "Expected `int`"),
    (Anything, Anything(it="a\0b"), "zero byte"), (Struct, Struct("a\0b"), "zero byte"), (Anything, Anything(it=Without(1)), "a Without would"),
]  # fmt: skip


def through_postgres(url: str, texts: Sequence[bytes]) -> list[bytes]:
    with psycopg.connect(url) as sql:
        rows = sql.execute("select one::jsonb::text from unnest(%s::text[]) one", ([text.decode() for text in texts],)).fetchall()
    return [text.encode() for (text,) in rows]


def test_accepted_models_come_back_as_they_were(url: str) -> None:
    codecs = [codec_of(of) for of, _ in KEPT]
    stored = through_postgres(url, [codec.encode(value) for codec, (_, value) in zip(codecs, KEPT)])
    for codec, (of, value), text in zip(codecs, KEPT, stored):
        back = codec.decode(text)
        if of is Wide:  # its time in the repeated hour equals no time of another zone
            assert type(back.number) is type(value.number) and back.at.timestamp() == value.at.timestamp()
            back, value = (one.model_copy(update={"at": None}) for one in (back, value))
        assert type(back) is type(value) and back == value


@pytest.mark.parametrize(("of", "value", "why"), CHANGED, ids=lambda of: f"{of!s:.60}")
def test_a_model_that_would_change_is_refused_by_place(of: Any, value: Any, why: str) -> None:
    with pytest.raises(trunkline.BadPayload, match=why):
        codec_of(of).encode(value)


@pytest.mark.parametrize("of", [Secret, Excluded, list[Secret], Optional[Excluded], Allowing], ids=str)
def test_lossy_dataclass_of_pydantic_is_refused_at_the_declaration(of: Any) -> None:
    with pytest.raises(TypeError, match="is a secret|is excluded|allows values without a field"):
        codec_of(of)


def test_a_refused_model_leaves_the_queue_as_it_was(url: str) -> None:
    async def story() -> None:
        db = await trunkline.Db.connect(url)
        await db.migrate()
        await db.create_queue("holders", Holder)
        holders = await db.queue("holders", Holder)
        with pytest.raises(trunkline.BadPayload, match="at one: a Derived"):
            await holders.enqueue_many([Holder(one=Base()), Holder(one=Derived())])
        await holders.enqueue(Holder(one=Base(n=3)))
        (message,) = await holders.take(10)
        assert message.payload == Holder(one=Base(n=3))

    asyncio.run(asyncio.wait_for(story(), 60))
