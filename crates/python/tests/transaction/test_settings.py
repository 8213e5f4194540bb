"""The settings of a session, and the converters that a user registered with a driver, do not change
a payload's text."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import asyncpg
import psycopg
import pytest
import trunkline
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.string import TextLoader
from sqlalchemy import create_engine
from trunkline import transaction

from .conftest import Awaited

SETTINGS = ["bytea_output = escape", "DateStyle = 'SQL, DMY'", "IntervalStyle = sql_standard", "extra_float_digits = -10", "TimeZone = 'Asia/Kolkata'"]
BYTES = [b"", b"AB", b"x", b"xx4142", b"zz", b"\\x4142", b"\x00\xff'\"\\", bytes(range(256))]


async def _asks(door: Any, connection: Any, text: str) -> None:
    if door.name == "django":
        with connection.cursor() as cursor:
            cursor.execute(text)
        return
    if "sqlalchemy" in door.name:
        import sqlalchemy

        ran = connection.execute(sqlalchemy.text(text))
    else:
        ran = connection.execute(text)
    await ran if door.awaits else None


@pytest.mark.parametrize("verb", ["lease", "take"])
def test_payloads_come_the_same_under_every_setting_of_the_session(door: Any, sql: Any, verb: str) -> None:
    sql("select trunkline.create_queue('raw', 'bytea')")

    async def scenario() -> None:
        async with door.begin() as connection:
            for setting in SETTINGS:
                await _asks(door, connection, f"set local {setting}")
            raw = Awaited(transaction.queue(connection, "raw", bytes))
            await raw.enqueue_many(BYTES)
            found = await getattr(raw, verb)(100)
        assert [message.payload for message in found] == BYTES
        (at,) = sql("select clock_timestamp()")
        assert all(abs((at - message.enqueued_at).total_seconds()) < 60 for message in found)

    asyncio.run(scenario())
    assert sql("select dead + to_retry from trunkline.stats('raw')") == [0]


class Wrong(TextLoader):
    """A user's loader that replaces every value."""

    def load(self, data: Any) -> Any:
        return "changed"


PAYLOAD = {"n": 1, "text": "a"}


def _check(messages: list[Any], sent: trunkline.Enqueued) -> None:
    (message,) = messages
    assert (message.payload, message.metadata, type(message.id), type(message.attempt)) == (PAYLOAD, {"a": "b"}, int, int)
    assert (sent, sent.outcome) == (message.id, "new")


def test_psycopg_adapters_of_user_change_nothing(url: str) -> None:
    with psycopg.connect(url) as connection:
        for name in ("float8", "numeric", "int4", "int8", "text", "jsonb", "timestamptz", "varchar"):
            connection.adapters.register_loader(name, Wrong)
        mails = transaction.queue(connection, "mails", dict)
        sent = mails.draft(PAYLOAD).metadata({"a": "b"}).enqueue()
        _check(mails.lease(1), sent)


def test_take_is_refused_in_a_pipeline_without_a_transaction(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection, connection.pipeline():
        mails = transaction.queue(connection, "mails", dict)
        mails.draft(PAYLOAD).enqueue()
        connection.execute("select 1")
        with pytest.raises(RuntimeError, match="take outside of a transaction"):
            mails.take()
        with connection.transaction():
            connection.execute("select 1")
            assert len(mails.take(2)) == 1


def test_asyncpg_codecs_of_user_change_nothing(url: str) -> None:
    async def scenario() -> None:
        place = conninfo_to_dict(url)
        place["database"] = place.pop("dbname")
        connection = await asyncpg.connect(**place)
        for name in ("float8", "numeric", "int4", "int8", "text", "jsonb"):
            await connection.set_type_codec(name, schema="pg_catalog", encoder=str, decoder=lambda text: Decimal(0))
        async with connection.transaction():
            mails = transaction.queue(connection, "mails", dict)
            sent = await mails.draft(PAYLOAD).metadata({"a": "b"}).enqueue()
            _check(await mails.lease(1), sent)
        await connection.close()

    asyncio.run(scenario())


def test_psycopg2_types_of_user_change_nothing(url: str) -> None:
    import psycopg2
    import psycopg2.extensions as extensions

    engine = create_engine("postgresql+psycopg2://", creator=lambda: psycopg2.connect(url))
    with engine.begin() as connection:
        for oid in (20, 23, 701, 1700, 25, 3802):
            changed = extensions.new_type((oid,), "CHANGED", lambda value, cursor: "changed")
            extensions.register_type(changed, connection.connection.dbapi_connection)
        mails = transaction.queue(connection, "mails", dict)
        sent = mails.draft(PAYLOAD).metadata({"a": "b"}).enqueue()
        _check(mails.lease(1), sent)
    engine.dispose()


def test_functions_of_another_role_are_not_called(url: str, sql: Any) -> None:
    for function, kind in (("make_interval(secs float8)", "interval"), ("clock_timestamp()", "timestamptz"), ("encode(bytea, text)", "text")):
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute(f"create function public.{function} returns {kind} language plpgsql as $$ begin raise 'called'; end $$")  # type: ignore[arg-type]
    sql("select trunkline.create_queue('raw', 'bytea')")
    with psycopg.connect(url) as connection:
        raw = transaction.queue(connection, "raw", bytes)
        raw.draft(b"a").after(0).enqueue()
        raw.enqueue_many([b"b"])
        first, second = raw.lease(2, 60)
        raw.extend(first, 60)
        raw.retry(second, 1)
    assert first.payload == b"a"
