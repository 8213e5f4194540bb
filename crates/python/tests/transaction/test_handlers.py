"""Tests a handler whose effect and acknowledgement commit together."""

from __future__ import annotations

from typing import Any

import psycopg
import trunkline
from trunkline import transaction


def test_effect_and_acknowledgement_commit_together_or_not_at_all(url: str, run: Any) -> None:
    app = trunkline.App(url)
    tries: list[int] = []

    @app.task(queue="payments", retry=trunkline.Fixed(0))
    async def pay(what: dict[str, int], context: trunkline.Context) -> None:
        tries.append(context.attempt)
        async with await psycopg.AsyncConnection.connect(url) as connection:
            await context.ends_elsewhere()
            await connection.execute("insert into effects default values")
            await transaction.queue(connection, pay).ack(context.lease)
            if len(tries) == 1:
                raise ValueError("after all statements, and before the commit")

    async def story() -> None:
        await app.setup()
        await pay.enqueue({"cents": 100})
        while len(tries) < 2:
            await app.drain()
        stats = await (await app.queue(pay)).stats()
        assert (stats.messages, stats.dead) == (0, 0), stats

    run(story())
    assert tries == [1, 2]
    with psycopg.connect(url) as connection:
        assert connection.execute("select count(*) from effects").fetchone() == (1,)
