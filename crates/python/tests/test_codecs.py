"""Tests the column type of each payload type, and the payloads that are refused."""

from __future__ import annotations

import asyncio
import enum
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any, Literal, Optional, TypedDict
from uuid import UUID, uuid4

import msgspec
import pydantic
import pytest
import trunkline
from trunkline._trunkline import depth
from trunkline.codec import codec_of
from trunkline.plain import Mismatch

from opened import opened


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Address:
    street: str
    tags: list[str] = field(default_factory=list)


@dataclass
class Mail:
    to: str
    size: int
    address: Optional[Address] = None
    at: datetime | None = None
    price: Decimal = Decimal(0)
    id: UUID | None = None
    colour: Colour = Colour.RED
    kind: Literal["a", "b"] = "a"
    pairs: dict[str, tuple[int, float]] = field(default_factory=dict)


class Typed(TypedDict):
    to: str


class Model(pydantic.BaseModel):
    to: str
    size: int


class Struct(msgspec.Struct):
    to: str
    size: int


class Reversed:
    """A codec that a user wrote."""

    column = "text"

    def encode(self, payload: str, /) -> bytes:
        return payload[::-1].encode()

    def decode(self, payload: bytes, /) -> str:
        return payload.decode()[::-1]


FULL = Mail("ada", 3, Address("x", ["y"]), datetime(2026, 1, 2, tzinfo=timezone.utc), Decimal("1.50"), uuid4(), pairs={"a": (1, 2.0)})
CASES: list[tuple[Any, str, Any]] = [
    (bytes, "bytea", b"\x00\xff"),
    (str, "text", "grüße"),
    (int, "int8", -(2**63)),
    (UUID, "uuid", uuid4()),
    (dict, "jsonb", {"a": [1, None, "ü"]}),
    (Any, "jsonb", [1, 2.5, "x"]),
    (list[int], "jsonb", [1, 2]),
    (Mail, "jsonb", FULL),
    (Typed, "jsonb", {"to": "ada"}),
    (list[Mail], "jsonb", [FULL]),
    (Model, "jsonb", Model(to="ada", size=1)),
    (list[Model], "jsonb", [Model(to="ada", size=1)]),
    (Struct, "jsonb", Struct("ada", 1)),
    (Reversed(), "text", "abc"),
]


@pytest.mark.parametrize(("type", "column", "value"), CASES, ids=[str(case[0]) for case in CASES])
def test_a_payload_comes_back_as_it_was(url: str, run: Any, type: Any, column: str, value: Any) -> None:
    async def story() -> None:
        db, mails = await opened(url, type)
        assert mails.codec.column == column
        assert (await db.describe_queue("mails")).payload == {"int8": "bigint"}.get(column, column)
        await mails.enqueue(value)
        (mail,) = await mails.lease(1)
        assert mail.payload == value

    run(story())


@pytest.mark.parametrize(
    ("type", "value"),
    [(bytes, "a"), (str, b"a"), (str, "a\x00b"), (str, "\ud800"), (int, 2**63), (int, True), (UUID, "a"), (dict, {"a": float("nan")}),
     (dict, {"a": object()}), (dict, {"a": "\x00"}), (Struct, object())],
)  # fmt: skip
def test_a_bad_payload_fails_its_own_caller_only(url: str, run: Any, type: Any, value: Any) -> None:
    good = {bytes: b"x", str: "x", int: 1, UUID: uuid4(), dict: {}, Struct: Struct("a", 1)}[type]

    async def story() -> None:
        _, mails = await opened(url, type)
        calls = [mails.enqueue(good), mails.enqueue(value), mails.enqueue(good)]
        first, bad, last = await asyncio.gather(*calls, return_exceptions=True)
        assert isinstance(first, int) and isinstance(last, int)
        assert isinstance(bad, trunkline.BadPayload) and bad.is_bad_payload, bad

    run(story())


@pytest.mark.parametrize("type", [Mail, Model, Struct])
@pytest.mark.parametrize("takes", [False, True])
def test_payload_of_another_type_fails_its_attempt_alone(url: str, run: Any, type: Any, takes: bool) -> None:
    async def story() -> None:
        db, _ = await opened(url, max_attempts=1)
        anything, mails = await db.queue("mails"), await db.queue("mails", type)
        await anything.enqueue_many([{"to": "a", "size": 1}, {"to": 5, "size": "x"}, {"to": "b", "size": 2}])
        found = await (mails.take(10) if takes else mails.lease(10))
        assert [mail.payload.to for mail in found] == ["a", "b"]
        while not (letters := await mails.dead_letters()):
            await asyncio.sleep(0.01)
        (letter,) = letters
        assert letter.payload is None and letter.problem and "cannot be read" in letter.error, letter

    run(story())


def test_a_mismatch_says_where_it_is() -> None:
    read = codec_of(list[Mail]).decode
    with pytest.raises(Mismatch, match=r"at \[0\].address.tags\[1\]: a string expected, not int"):
        read(b'[{"to": "a", "size": 1, "address": {"street": "x", "tags": ["y", 5]}}]')
    with pytest.raises(Mismatch, match="Mail has no size, to"):
        read(b"[{}]")
    with pytest.raises(TypeError, match="cannot be read from JSON"):
        codec_of(object.__class__)


def test_fields_of_a_newer_program_are_passed_over() -> None:
    assert codec_of(Address).decode(b'{"street": "x", "floor": 3}') == Address("x")


@dataclass
class Nested:
    within: Nested | None = None


def test_accepted_payload_can_be_read_at_any_depth() -> None:
    codec = codec_of(Nested)
    refused = 0
    for depth in (10, 60, 120, 180, 240, 290, 320, 400, 600):
        payload = None
        for _ in range(depth):
            payload = Nested(payload)
        try:
            written = codec.encode(payload)
        except trunkline.BadPayload:
            refused += 1
            continue
        assert refused == 0, "a payload deeper than a refused payload is refused, too"
        codec.decode(written)
        if depth <= 120:
            _further_down(60, lambda: codec.decode(written))
    assert refused > 0


@pytest.mark.parametrize("wrapped", [lambda inner: [inner], lambda inner: {"a": inner}, lambda inner: (inner,)], ids=["list", "dict", "tuple"])
@pytest.mark.parametrize("of", [Any, object, list, dict], ids=str)
def test_accepted_payload_of_any_type_can_be_read_further_down(of: Any, wrapped: Callable[[Any], Any]) -> None:
    codec = codec_of(of)
    for depth in (100, *range(500, 1000, 10)):
        payload = wrapped(None)
        for _ in range(depth):
            payload = wrapped(payload)
        try:
            written = codec.encode(payload)
        except trunkline.BadPayload:
            assert depth > 100 or type(payload) is not of
            continue
        _further_down(60, lambda: codec.decode(written))


def _further_down(calls: int, then: Callable[[], object]) -> None:
    if calls:
        _further_down(calls - 1, then)
    else:
        then()


@pytest.mark.parametrize(
    ("text", "levels"), [("1", 0), ("[]", 1), ('{"a":[{}]}', 3), ('["[[[", "\\"[[", "\\\\"]', 1), ("[[],[[]],[]]", 3), ('["a\\\\\\"[", [1]]', 2)]
)
def test_levels_are_counted_outside_of_texts(text: str, levels: int) -> None:
    json.loads(text)
    assert depth(text) == levels


def test_a_number_of_any_length_is_refused_as_a_payload() -> None:
    for number in (2**63, -(2**63) - 1, 10**5000):
        with pytest.raises(trunkline.BadPayload, match=r"the number is not from -2\*\*63 to 2\*\*63 - 1"):
            codec_of(int).encode(number)


def test_a_subclass_comes_back_as_the_type_that_is_declared() -> None:
    class Name(str): ...

    class Number(int): ...

    for of, value, plain in [(list[str], [Name("a")], str), (list[int], [Number(3)], int), (list[float], [3], float)]:
        codec: Any = codec_of(of)
        (read,) = codec.decode(codec.encode(value))
        assert read == value[0] and type(read) is plain
    with pytest.raises(trunkline.BadPayload):
        codec_of(bytes).encode(type("Own", (bytes,), {})(b"a"))
