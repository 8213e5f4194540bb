"""Calls in a pipeline of psycopg, and on a connection that several tasks use."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg.pq import TransactionStatus
from trunkline import transaction

LOCK = 1804


def test_enqueue_and_statements_before_it_in_a_pipeline_commit_together(url: str, sql: Callable[..., list[Any]]) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        with pytest.raises(psycopg.Error), connection.pipeline():
            connection.execute("insert into effects default values")
            transaction.queue(connection, "missing", dict).enqueue({})
        assert sql("select from effects") == []
        with connection.pipeline():
            connection.execute("insert into effects default values")
            sent = transaction.queue(connection, "mails", dict).enqueue({})
        assert len(sql("select from effects")) == 1 and sql("select id from trunkline.messages('mails')") == [sent]


def test_async_enqueue_and_statements_before_it_commit_together(url: str, sql: Callable[..., list[Any]]) -> None:
    async def scenario() -> None:
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            with pytest.raises(psycopg.Error):
                async with connection.pipeline():
                    await connection.execute("insert into effects default values")
                    await transaction.queue(connection, "missing", dict).enqueue({})
            assert sql("select from effects") == []

    asyncio.run(scenario())


def test_take_in_an_async_pipeline_needs_a_transaction(url: str, sql: Callable[..., list[Any]]) -> None:
    async def scenario() -> None:
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection, connection.pipeline():
            mails = transaction.queue(connection, "mails", dict)
            await mails.enqueue({})
            await connection.execute("select 1")
            with pytest.raises(RuntimeError, match="take outside of a transaction"):
                await mails.take()
            async with connection.transaction():
                await connection.execute("select 1")
                assert len(await mails.take(2)) == 1

    asyncio.run(scenario())
    assert sql("select from trunkline.messages('mails')") == []


async def _busy(connection: Any) -> asyncio.Task[Any]:
    """Starts a statement on the connection, which waits for `LOCK`."""
    running = asyncio.ensure_future(connection.execute("select pg_advisory_lock(%s)", [LOCK]))
    until = time.monotonic() + 30
    while connection.info.transaction_status != TransactionStatus.ACTIVE:
        assert time.monotonic() < until and not running.done()
        await asyncio.sleep(0)
    return running


async def _all_wait(tasks: list[asyncio.Task[Any]]) -> None:
    """Lets each task run until it waits for the connection."""
    for _ in range(3):
        await asyncio.sleep(0)
    assert not any(task.done() for task in tasks)


def test_an_error_on_a_shared_connection_reaches_its_own_task(url: str, sql: Callable[..., list[Any]]) -> None:
    sql("select pg_advisory_lock(%s)", LOCK)

    async def scenario() -> None:
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            running = await _busy(connection)
            enqueuing = asyncio.ensure_future(transaction.queue(connection, "mails", dict).enqueue({}))
            failing = asyncio.ensure_future(connection.execute("select 1 / 0"))
            await _all_wait([enqueuing, failing])
            sql("select pg_advisory_unlock(%s)", LOCK)
            _, sent, failed = await asyncio.gather(running, enqueuing, failing, return_exceptions=True)
            assert sql("select id from trunkline.messages('mails')") == [sent]
            assert isinstance(failed, psycopg.errors.DivisionByZero)

    asyncio.run(scenario())


def test_take_on_a_shared_busy_connection_is_refused(url: str, sql: Callable[..., list[Any]]) -> None:
    sql("select pg_advisory_lock(%s)", LOCK)

    async def scenario() -> None:
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            mails = transaction.queue(connection, "mails", dict)
            sent = await mails.enqueue({})
            running = await _busy(connection)
            taking = asyncio.ensure_future(mails.take())
            await _all_wait([taking])
            sql("select pg_advisory_unlock(%s)", LOCK)
            await running
            with pytest.raises(RuntimeError, match="take outside of a transaction"):
                await taking
            assert sql("select id from trunkline.messages('mails')") == [sent]

    asyncio.run(scenario())
