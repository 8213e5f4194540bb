"""A worker with reports enabled writes the same rows as a Rust worker, and the console reads
them."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import psycopg
import pytest
import trunkline

#: The values that the console shows for the workers of a queue.
SHOWN = """
select w.process, w.version, w.ended, w.hands, h.handled, h.failed, w.p50, w.p99
from (select distinct on (r.worker) r.* from trunkline.worker r
      where r.queue = %(queue)s and r.at > now() - interval '1 hour' order by r.worker, r.at desc) w
join (select r.worker, sum(r.handled)::bigint as handled, sum(r.failed)::bigint as failed from trunkline.worker r
      where r.queue = %(queue)s and r.at > now() - interval '1 hour' group by 1) h on h.worker = w.worker
"""


def shown(url: str, queue: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as sql:
        return sql.execute(SHOWN, {"queue": queue}).fetchall()


def application(url: str) -> trunkline.App:
    app = trunkline.App(url)

    @app.task(retry=trunkline.Fixed(3600))
    async def mails(number: int) -> None:
        await asyncio.sleep(0.02)
        if number % 10 == 0:
            raise trunkline.Bury("no use")

    @app.task(batch=10, retry=trunkline.Fixed(3600))
    def sums(numbers: list[int]) -> list[Exception | None]:
        return [ValueError(number) if number % 2 else None for number in numbers]

    return app


def test_report_counts_handled_and_failed_and_has_times(url: str, run: Any) -> None:
    app = application(url)

    async def story() -> None:
        await app.setup()
        await app.tasks["mails"].enqueue_many(range(100))
        await app.tasks["sums"].enqueue_many(range(50))
        await app.drain(concurrency=7)
        assert shown(url, "mails") == [], "reports are disabled"
        await app.tasks["mails"].enqueue_many(range(100))
        await app.tasks["sums"].enqueue_many(range(50))
        await app.drain(concurrency=7, reports=True)

    run(story())
    rows = shown(url, "mails")
    assert {(process, ended, hands) for process, _, ended, hands, *_ in rows} == {(os.getpid(), True, 7)}
    assert (sum(row[4] for row in rows), sum(row[5] for row in rows)) == (100, 10)
    half, most = next((half, most) for *_, half, most in rows if half is not None)
    assert 0.02 <= half <= most < 20, "the times of a handler that slept"
    rows = shown(url, "sums")
    assert (sum(row[4] for row in rows), sum(row[5] for row in rows)) == (50, 25)


def test_it_tells_while_it_works_and_that_it_has_ended(url: str, run: Any) -> None:
    app = application(url)

    async def story() -> None:
        await app.setup()
        working = asyncio.ensure_future(app.run(reports=True))
        while not shown(url, "mails"):
            await asyncio.sleep(0.01)
        assert [row[2] for row in shown(url, "mails")] == [False]
        app.stop()
        await working
        assert [row[2] for row in shown(url, "mails") + shown(url, "sums")] == [True, True]

    run(story())


def test_worker_without_right_to_report_warns_and_works_on(url: str, run: Any, caplog: pytest.LogCaptureFixture) -> None:
    app = application(url)

    async def story() -> None:
        await app.setup()
        await app.tasks["mails"].enqueue_many(range(3))
        with psycopg.connect(url, autocommit=True) as sql:
            sql.execute("create role a_worker_unheard login")
            sql.execute("select trunkline.grant_rights('a_worker_unheard', 'consumer', 'mails')")
            sql.execute("revoke all on trunkline.worker from a_worker_unheard")
        try:
            app.url = f"{url} user=a_worker_unheard"
            assert (await app.drain(queues=["mails"], reports=True)).done == 2
            while not (said := [one for one in caplog.records if one.name == "trunkline.worker.tell"]):
                await asyncio.sleep(0.01)
        finally:
            with psycopg.connect(url, autocommit=True) as sql:
                sql.execute("drop owned by a_worker_unheard")
                sql.execute("drop role a_worker_unheard")
        text = said[0].getMessage()
        assert text.startswith("worker cannot report; it keeps working") and "permission denied" in text, text

    run(story())
    assert shown(url, "mails") == []
