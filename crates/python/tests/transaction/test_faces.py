"""Tests of the module that do not depend on a driver."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import asyncpg
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from trunkline import transaction


def source(name: str) -> str:
    return (Path(transaction.__file__).parent / name).read_text()


def test_both_faces_have_the_same_verbs_and_the_same_words():
    words = {"async def": "def", "await ": "", "RunAsync": "Run", "AsyncDraft": "SyncDraft", "AsyncQueue": "SyncQueue", "an asynchronous": "a synchronous"}
    awaiting = source("async_queue.py")
    for word, other in words.items():
        awaiting = awaiting.replace(word, other)
    assert awaiting.splitlines()[1:] == source("sync_queue.py").splitlines()[1:]


def test_no_driver_is_imported_before_it_is_used():
    drivers = ["psycopg", "asyncpg", "sqlalchemy", "django"]
    program = f"import sys, trunkline.transaction; print([name for name in {drivers} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_another_connection_is_refused_by_name():
    import sqlite3

    with pytest.raises(TypeError, match="sqlite3.Connection is not a connection of psycopg 3"):
        transaction.queue(sqlite3.connect(":memory:"), "mails", dict)


def test_what_a_user_taught_the_driver_changes_nothing(url, sql):
    """Registered codecs, and cursors with other placeholders, change nothing."""

    async def on_asyncpg() -> None:
        place = conninfo_to_dict(url)
        place["database"] = place.pop("dbname")
        connection = await asyncpg.connect(**place)
        await connection.set_type_codec("jsonb", schema="pg_catalog", encoder=json.dumps, decoder=json.loads)
        async with connection.transaction():
            mails = transaction.queue(connection, "mails", dict)
            await mails.draft({"n": 1}).metadata({"a": "b"}).enqueue()
            (message,) = await mails.take()
        assert (message.payload, message.metadata) == ({"n": 1}, {"a": "b"})
        await connection.close()

    asyncio.run(on_asyncpg())
    with psycopg.connect(url, cursor_factory=psycopg.RawCursor) as connection:
        transaction.queue(connection, "mails", dict).enqueue({"n": 1})
    assert sql("select due from trunkline.stats('mails')") == [1]


def test_the_schema_can_have_another_name(url):
    with psycopg.connect(url) as connection, pytest.raises(psycopg.errors.InvalidSchemaName):
        transaction.queue(connection, "mails", dict, schema='of "mine"').enqueue({"n": 1})


def test_a_transaction_that_enqueues_sends_no_notification_before_its_end(url, sql):
    """A listening session receives one notification, at the commit, no matter how many statements
    the transaction had."""
    with psycopg.connect(url, autocommit=True) as listener, psycopg.connect(url) as connection:
        listener.execute("select trunkline.listen('mails')")
        mails = transaction.queue(connection, "mails", dict)
        for n in range(10):
            mails.enqueue({"n": n})
        assert list(listener.notifies(timeout=0)) == []
        connection.commit()
        assert len(list(listener.notifies(timeout=30, stop_after=1))) == 1
        assert list(listener.notifies(timeout=0)) == []
