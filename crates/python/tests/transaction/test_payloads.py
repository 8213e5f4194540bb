"""The library and a queue in the user's transaction read each other's payloads unchanged."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import asyncpg
import msgspec
import psycopg
import pydantic
import pytest
import trunkline
from psycopg.conninfo import conninfo_to_dict
from trunkline import transaction
from trunkline.codec import codec_of
from trunkline.sync import Db


@dataclass
class Dated:
    to: str
    at: datetime


class Model(pydantic.BaseModel):
    to: str
    at: datetime


class Struct(msgspec.Struct):
    to: str
    n: int


NOON = datetime(2030, 1, 1, 12, tzinfo=timezone.utc)
PAYLOADS: list[tuple[Any, list[Any]]] = [
    (dict, [{"to": "ada", "ü": [1, 2.5, None, True], "deep": {"a": "\\ \" {x},NULL"}}]),
    (list[int], [[], [1, 2, 2**60]]),
    (str, ["", "a \\ b \" c, {d} ü %s", "NULL"]),
    (bytes, [b"", b"\x00\xff\\x'\""]),
    (int, [0, -1, 2**63 - 1, -(2**63)]),
    (uuid.UUID, [uuid.UUID(int=0), uuid.UUID("12345678-1234-5678-1234-567812345678")]),
    (Dated, [Dated("ada", NOON)]),
    (Model, [Model(to="ada", at=NOON)]),
    (Struct, [Struct("ada", 1)]),
]


@pytest.mark.parametrize(("type", "payloads"), PAYLOADS, ids=lambda value: getattr(value, "__name__", None) or "…")
def test_library_and_transaction_read_each_others_payloads(url, type, payloads):
    async def scenario():
        db = await trunkline.Db.connect(url)
        await db.create_queue("typed", type)
        queue = await db.queue("typed", type)
        with psycopg.connect(url) as connection:
            within = transaction.queue(connection, queue)
            within.enqueue(payloads[0])
            within.enqueue_many(payloads)
        assert [message.payload for message in await queue.take(10)] == [payloads[0], *payloads]
        await queue.enqueue_many(payloads)
        with psycopg.connect(url) as connection:
            assert [message.payload for message in transaction.queue(connection, "typed", type).take(10)] == payloads

    asyncio.run(scenario())


def test_zero_byte_in_text_is_refused_before_sending(url):
    with psycopg.connect(url) as connection:
        texts = transaction.queue(connection, "mails", str)
        with pytest.raises(trunkline.BadPayload, match="zero byte"):
            texts.enqueue("a\0b")


def test_library_and_transaction_acknowledge_each_others_leases(url):
    async def scenario():
        db = await trunkline.Db.connect(url)
        mails = await db.queue("mails", dict)
        await mails.enqueue_many([{"n": 1}, {"n": 2}, {"n": 3}])
        one, two = await mails.lease(2)
        with psycopg.connect(url) as connection:
            within = transaction.queue(connection, mails)
            within.ack([one, two.lease])
            (three,) = within.lease(1)
        await mails.ack(three.lease)
        assert (await mails.stats()).messages == 0

    asyncio.run(scenario())


def test_a_codec_of_another_column_is_refused_by_name(url):
    class Floats:
        column = "float8"

        def encode(self, payload: float, /) -> bytes:
            return b""

        def decode(self, payload: bytes, /) -> float:
            return 0.0

    with psycopg.connect(url) as connection, pytest.raises(trunkline.WrongType, match="float8"):
        transaction.queue(connection, "mails", Floats())


@pytest.mark.parametrize("outcome", ["new", "duplicate", "replaced"])
def test_drivers_and_validators_take_enqueued_as_a_number(url, outcome):
    sent = trunkline.Enqueued.of(7, outcome)

    async def by_asyncpg():
        place = conninfo_to_dict(url)
        place["database"] = place.pop("dbname")
        connection = await asyncpg.connect(**place)
        try:
            return await connection.fetchval("select $1::int8", sent)
        finally:
            await connection.close()

    with psycopg.connect(url) as connection:
        assert connection.execute("select %s::int8, %b, (%s::int8[])[1]", (sent, sent, [sent])).fetchone() == (7, 7, 7)
    assert asyncio.run(by_asyncpg()) == 7
    assert pydantic.TypeAdapter(int).dump_json(sent) == b"7" and msgspec.json.encode(sent.id) == b"7"
    assert codec_of(int).encode(sent) == codec_of(int).encode(7) and codec_of(list[int]).encode([sent]) == b"[7]"


class Panic(BaseException):
    """An exception like those of codecs in Rust, which are no ``Exception``."""


class Panics:
    column = "int8"

    def encode(self, payload: int, /) -> bytes:
        return payload.to_bytes(8, "big")

    def decode(self, payload: bytes, /) -> int:
        if payload[-1] == 2:
            raise Panic("index out of bounds")
        return payload[-1]


def test_payload_that_panics_its_codec_fails_alone(url):
    db = Db.connect(url)
    db.create_queue("numbers", int)
    db.queue("numbers", int).enqueue_many(range(5))
    with psycopg.connect(url) as connection:
        messages = transaction.queue(connection, "numbers", Panics()).lease(5)
    assert [message.payload for message in messages] == [0, 1, 3, 4]
    stats = db.queue("numbers", int).stats()
    assert (stats.due, stats.leased) == (1, 4)
