"""A message that is given back costs no attempt, although connections break at that time."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest
import trunkline
from trunkline.sync import Db

from opened import opened

#: Ends the connection of each of the first three statements that release a message.
BREAKS = """
    create sequence public.release;
    create function public.break_release() returns trigger language plpgsql as $$
    begin
        if nextval('public.release') <= 3 then
            perform pg_terminate_backend(pg_backend_pid());
            perform pg_sleep(60);
        end if;
        return new;
    end $$;
    create trigger break_release before update on trunkline.queue_mails
        for each row when (new.released > old.released) execute function public.break_release();
"""


@pytest.mark.parametrize("batch", [None, 2])
def test_message_is_given_back_once_connections_last(batch: int | None, url: str, run: Any) -> None:
    app, begun = trunkline.App(url), asyncio.Event()
    handling: list[Any] = []

    async def waits(number: Any) -> None:
        handling.append(asyncio.current_task())
        begun.set()
        await asyncio.Event().wait()

    task: Any = app.task(queue="waits", batch=batch, max_attempts=1)(waits)  # type: ignore[call-overload]

    async def story() -> None:
        await app.setup()
        await task.enqueue(1)
        with psycopg.connect(url) as sql:
            sql.execute(BREAKS.replace("queue_mails", "queue_waits"))
        working = asyncio.ensure_future(app.run())
        await begun.wait()
        app.stop()
        handling[0].cancel()  # as at the end of the event loop
        summary = await working
        assert (summary.released, summary.lost, summary.retried, summary.dead) == (1, 0, 0, 0)
        queue = await app.queue(task)
        assert await queue.dead_letters() == []
        (message,) = await queue.lease(1)
        assert message.attempts == 1, "no attempt was counted"
        with psycopg.connect(url) as sql:
            assert sql.execute("select last_value from public.release").fetchone() == (4,)

    run(story())


@pytest.mark.parametrize("how", ["late offer", "late iteration", "close", "block", "close of a thread"])
def test_consumer_gives_messages_back_once_connections_last(how: str, url: str, run: Any) -> None:
    async def story() -> None:
        _, queue = await opened(url, int, lease=6 if "late" in how else 60, max_attempts=1)
        theirs, seen = (Db.connect(url).queue("mails", int) for _ in range(2))
        for number in range(3):
            await queue.enqueue(number)  # in a row of its own
        consumer: Any = queue.consumer() if how in ("close", "block") else theirs.consumer()
        with psycopg.connect(url) as sql:
            sql.execute(BREAKS)  # of releases, so that leases and acknowledgements succeed
        offer = theirs.native.lease(None, 3) if how == "late offer" else None
        if offer is None:
            first = await consumer.__anext__() if how in ("close", "block") else next(consumer)
            await queue.ack(first)
        if how == "block":
            await consumer.__aexit__(None, None, None)
        elif "close" in how:
            consumer.close()
        count = 2 if offer is None else 3
        while seen.stats().due < count:
            await asyncio.sleep(0.01)
        messages = seen.lease(count)
        assert [message.attempts for message in messages] == [1] * count, "no attempt was counted"
        assert offer is None or offer.accept(None) is None
        with psycopg.connect(url) as sql:
            assert sql.execute("select last_value >= 4 from public.release").fetchone() == (True,), "connections broke"
        seen.ack(messages)
        assert seen.stats().messages == 0

    run(story())
