"""Direct delivery: a message inside its notification."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor, TimeoutError as NotDone
from typing import Any

import psycopg
import pytest
from trunkline.sync import Db

from opened import opened


def test_direct_message_arrives_without_being_stored(url: str, run: Any) -> None:
    async def story() -> None:
        _, mails = await opened(url)
        consumer = mails.consumer("notify")
        receiving = asyncio.create_task(consumer.receive_direct())
        with psycopg.connect(url, autocommit=True) as connection:

            async def until_waiting() -> None:
                while connection.execute("select count(*) from trunkline.waiting").fetchone() != (1,):
                    await asyncio.sleep(0.01)

            await until_waiting()
            id = await mails.send_direct(mails.draft({"to": "ada"}).metadata({"tenant": "acme"}))
            mail = await receiving
            assert (mail.id, mail.payload, mail.metadata, mail.attempt) == (id, {"to": "ada"}, {"tenant": "acme"}, 0)
            stored = connection.execute("select pg_relation_size('trunkline.queue_mails')").fetchone()
            assert id.is_new and stored == (0,)

            # After a cancelled call the consumer still waits for direct messages, and the next call
            # returns the message.
            cancelled = asyncio.create_task(consumer.receive_direct())
            await until_waiting()
            cancelled.cancel()
            await asyncio.wait([cancelled])
            sent = await mails.send_direct({"to": "bob"})
            assert ((await consumer.receive_direct()).id, (await mails.stats()).messages) == (sent, 0)
        enqueued = await mails.send_direct({"to": "eve"})
        assert (await mails.find(enqueued)) is not None, "no consumer waits"
        assert (await consumer.receive_direct()).id == enqueued

    run(story())


def test_direct_message_between_threads(url: str) -> None:
    db = Db.connect(url)
    db.migrate()
    db.create_queue("mails", dict)
    mails = db.queue("mails", dict)
    with ThreadPoolExecutor(1) as threads:
        receiving = threads.submit(mails.consumer("notify").receive_direct)
        sent = mails.send_direct({"to": "ada"})
        assert receiving.result(30).id == sent


def test_closed_consumer_waits_for_no_direct_messages(url: str, run: Any) -> None:
    async def story() -> None:
        _, mails = await opened(url)
        theirs = Db.connect(url).queue("mails", dict)

        async def until_waiting(count: int) -> None:
            with psycopg.connect(url, autocommit=True) as connection:
                while connection.execute("select count(*) from trunkline.waiting").fetchone() != (count,):
                    await asyncio.sleep(0.01)

        async with mails.consumer("notify") as consumer:
            cancelled = asyncio.create_task(consumer.receive_direct())
            await until_waiting(1)
            cancelled.cancel()
            await asyncio.wait([cancelled])
            sent = await mails.send_direct({"to": "ada"})
        while (await mails.stats()).messages != 1:  # the message that was on its way
            await asyncio.sleep(0.01)
        await until_waiting(0)
        assert (await consumer.receive_direct()).id == sent, "the consumer can be used again"
        consumer.close()
        await until_waiting(0)

        with theirs.consumer("notify") as blocking, ThreadPoolExecutor(1) as threads:
            receiving = threads.submit(blocking.receive_direct)
            sent = await mails.send_direct({"to": "bob"})
            received = await asyncio.wrap_future(receiving)
            assert received.id == sent
        await until_waiting(0)

    run(story())


#: Sends a message directly, in the transaction of the sender.
SENDS = """select trunkline.send_direct('mails', '{"to": "ada"}'::jsonb)"""


def test_end_of_a_consumer_waits_for_the_message_on_its_way(url: str, run: Any) -> None:
    async def story() -> None:
        _, mails = await opened(url)
        theirs = Db.connect(url).queue("mails", dict)
        with psycopg.connect(url, autocommit=True) as sql, psycopg.connect(url) as sender:

            async def until_waiting() -> None:
                while sql.execute("select count(*) from trunkline.waiting").fetchone() != (1,):
                    await asyncio.sleep(0.01)

            consumer = mails.consumer("notify")
            cancelled = asyncio.create_task(consumer.receive_direct())
            await until_waiting()
            cancelled.cancel()
            sender.execute(SENDS)
            ending = asyncio.create_task(consumer.__aexit__(None, None, None))
            assert not (await asyncio.wait([ending], timeout=0.3))[0], "the message is still being sent"
            sender.commit()
            await ending
            assert theirs.stats().messages == 1
            assert sql.execute("select count(*) from trunkline.waiting").fetchone() == (0,)
            theirs.take(1)

            # A call that still waits receives its message after that.
            waiting = asyncio.create_task(consumer.receive_direct())
            await until_waiting()
            await asyncio.wait_for(consumer.__aexit__(None, None, None), 4)
            sent = await mails.send_direct({"to": "bob"})
            assert (await waiting).id == sent

    run(story())


class Interrupted(Exception):
    """Raised by a signal handler."""


def test_close_in_a_thread_waits_for_the_message_on_its_way(url: str) -> None:
    db = Db.connect(url)
    db.migrate()
    db.create_queue("mails", dict)
    mails = db.queue("mails", dict)
    consumer = mails.consumer("notify")

    def interrupts(*_: object) -> None:
        raise Interrupted

    def interrupt_once_it_waits() -> None:
        with psycopg.connect(url, autocommit=True) as sql:
            while sql.execute("select count(*) from trunkline.waiting").fetchone() != (1,):
                time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, interrupts)
    try:
        with ThreadPoolExecutor(1) as threads, psycopg.connect(url) as sender:
            interrupting = threads.submit(interrupt_once_it_waits)
            with pytest.raises(Interrupted):
                consumer.receive_direct()
            interrupting.result(30)
            sender.execute(SENDS)
            closing = threads.submit(consumer.close)
            with pytest.raises(NotDone):
                closing.result(0.3)
            sender.commit()
            closing.result(30)
            assert mails.stats().messages == 1
    finally:
        signal.signal(signal.SIGUSR1, before)
