"""An application opens its database and its queues once, however many callers use them."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
import trunkline
from trunkline import sync, transaction

Run = Callable[[Any], Any]


@pytest.fixture
def app(url: str) -> trunkline.App:
    app = trunkline.App(url)

    @app.task(queue="numbers")
    async def count(number: int) -> None: ...

    asyncio.run(app.setup())
    app.close()
    return app


@pytest.fixture
def task(app: trunkline.App) -> trunkline.Task[int]:
    return app.tasks["numbers"]


class Connects:
    """Counts the package's connects, and makes them fail or wait."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.fails = False
        self.may_go = threading.Event()
        self.may_go.set()
        real = sync.Db.connect

        def connect(url: str = "") -> sync.Db:
            self.count += 1
            assert self.may_go.wait(30)
            if self.fails:
                raise OSError("no network")
            return real(url)

        monkeypatch.setattr(sync.Db, "connect", staticmethod(connect))


@pytest.fixture
def connects(app: trunkline.App, monkeypatch: pytest.MonkeyPatch) -> Connects:
    return Connects(monkeypatch)


def test_first_calls_at_once_connect_and_open_once(task: trunkline.Task[int], connects: Connects, run: Run) -> None:
    async def story() -> None:
        ids = await asyncio.gather(*(task.enqueue(n) for n in range(1000)))
        assert len(set(ids)) == 1000 and connects.count == 1
        queues = await asyncio.gather(*(task.app.queue(task) for _ in range(100)))
        assert len({id(queue) for queue in queues}) == 1

    run(story())


def test_first_calls_of_threads_and_loops_connect_once(task: trunkline.Task[int], connects: Connects) -> None:
    connects.may_go.clear()

    def call(n: int) -> int:
        return task.app.queue_sync(task).enqueue(n) if n % 2 else asyncio.run(task.enqueue(n))

    with ThreadPoolExecutor(16) as threads:
        ids = threads.map(call, range(16))
        connects.may_go.set()
        assert len(set(ids)) == 16
    assert connects.count == 1


def test_a_first_call_that_is_cancelled_cancels_no_other(task: trunkline.Task[int], connects: Connects, run: Run) -> None:
    async def story() -> None:
        connects.may_go.clear()
        first, *others = [asyncio.ensure_future(task.enqueue(n)) for n in range(10)]
        while not connects.count:
            await asyncio.sleep(0)
        first.cancel()
        connects.may_go.set()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert len(set(await asyncio.gather(*others))) == 9 and connects.count == 1

    run(story())


def test_loop_that_ends_while_opening_leaves_next_one_whole(task: trunkline.Task[int], connects: Connects) -> None:
    connects.may_go.clear()

    async def gives_up() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(task.enqueue(1), 0.05)

    asyncio.run(gives_up())
    connects.may_go.set()
    assert asyncio.run(task.enqueue(2)) and connects.count == 1


def test_a_failed_opening_is_not_kept(task: trunkline.Task[int], connects: Connects, run: Run) -> None:
    async def story() -> None:
        connects.fails = True
        connects.may_go.clear()
        calls = [asyncio.ensure_future(task.enqueue(n)) for n in range(50)]
        while not connects.count:
            await asyncio.sleep(0)  # until all calls have started
        connects.may_go.set()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(one, OSError) for one in outcomes) and connects.count == 1
        connects.fails = False
        assert await task.enqueue(1)

    run(story())


def test_many_first_calls_cost_about_what_later_ones_do(task: trunkline.Task[int], run: Run) -> None:
    async def story() -> None:
        async def took() -> float:
            began = time.perf_counter()
            await asyncio.gather(*(task.enqueue(n) for n in range(20_000)))
            return time.perf_counter() - began

        first, later = await took(), min([await took(), await took()])
        assert first < 10 * later + 5, (first, later)  # once it was sixty times as long

    run(story())


def test_a_child_of_a_fork_opens_for_itself(task: trunkline.Task[int], run: Run) -> None:
    assert run(task.enqueue(1))
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if task.app.queue_sync(task).enqueue(2) else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert run(task.enqueue(3))


def test_another_address_holds_from_the_next_use_on(task: trunkline.Task[int], run: Run) -> None:
    """Tests of a program do this, because each test has its own database."""
    from trunkline.testing import database

    assert run(task.enqueue(1))
    task.app.url = database()
    run(task.app.setup())
    assert run(task.enqueue(2))
    assert task.app.queue_sync(task).stats().messages == 1


def test_a_transaction_uses_the_schema_of_the_queue(url: str, run: Run) -> None:
    app = trunkline.App(f"{url} schema=other")

    @app.task(queue="mails")
    async def send(mail: str) -> None: ...

    with psycopg.connect(url) as sql:
        before = transaction.queue(sql, send)._schema  # pyright: ignore[reportPrivateUsage]  # not yet connected
        run(app.setup())
        transaction.queue(sql, send).enqueue("a")
        transaction.queue(sql, app.queue_sync(send)).enqueue("b")
        sql.commit()
        assert before == '"other"' and app.queue_sync(send).stats().messages == 2
