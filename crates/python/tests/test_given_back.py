"""A message that a worker gives back costs no attempt, although connections break at that time."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest
import trunkline

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
    create trigger break_release before update on trunkline.queue_waits
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
            sql.execute(BREAKS)
        working = asyncio.ensure_future(app.run())
        await begun.wait()
        app.stop()
        handling[0].cancel()  # as at the end of the event loop
        assert (await working).dead == 0
        queue = await app.queue(task)
        assert await queue.dead_letters() == []
        (message,) = await queue.lease(1)
        assert message.attempts == 1, "no attempt was counted"
        with psycopg.connect(url) as sql:
            assert sql.execute("select last_value from public.release").fetchone() == (4,)

    run(story())
