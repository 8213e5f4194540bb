"""Messages that wait for a blocked event loop lose no attempt: their handlers have not begun."""

from __future__ import annotations

import asyncio
import select
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
import trunkline
from trunkline import sync, transaction

from opened import opened

ONCE = trunkline.Fixed(0, max_attempts=1)
#: The number of seconds after which a condition that did not become true fails a test.
SOON = 20.0


def blocks_until(is_true: Callable[[], bool]) -> None:
    """Blocks the thread, and with it the event loop, until a condition is true."""
    limit = time.monotonic() + SOON
    while not is_true():
        assert time.monotonic() < limit, "the condition did not become true in time"
        time.sleep(0.005)


async def _until_settled(*queues: trunkline.Queue[Any]) -> None:
    for queue in queues:
        while (await queue.stats()).messages:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("kind", ["loop", "thread", "batch"])
def test_time_limit_counts_from_the_beginning_of_the_handler(kind: str, url: str, run: Any) -> None:
    app, limit = trunkline.App(url), 0.4
    begun = list[int]()

    @app.task(queue="blocks", retry=ONCE, timeout=limit)
    async def blocks(number: int) -> None:
        app.queue_sync(waits).enqueue_many(range(20))  # the worker leases them while the loop is blocked
        began = time.monotonic()
        blocks_until(lambda: time.monotonic() > began + 3 * limit)

    async def in_loop(number: int) -> None:
        begun.append(number)

    def in_thread(number: int) -> None:
        begun.append(number)

    async def in_batch(numbers: list[int]) -> None:
        begun.extend(numbers)

    handler: Any = {"loop": in_loop, "thread": in_thread, "batch": in_batch}[kind]
    options: dict[str, Any] = {"batch": 2} if kind == "batch" else {}
    waits: Any = app.task(queue="waits", retry=ONCE, max_attempts=1, timeout=limit, **options)(handler)

    async def story() -> None:
        await app.setup()
        await blocks.enqueue(1)
        working = asyncio.ensure_future(app.run())
        queue = await app.queue(waits)
        await _until_settled(await app.queue(blocks), queue)
        app.stop()
        summary = await working
        assert await queue.dead_letters() == []
        assert sorted(begun) == list(range(20))
        assert (summary.done, summary.dead) == (20, 1), "only the handler that blocks has exceeded its limit"

    run(story())


@pytest.mark.parametrize("batch", [None, 2])
def test_time_limit_ends_with_the_function_in_a_thread(batch: int | None, url: str, run: Any) -> None:
    app, limit = trunkline.App(url), 1.0
    has_begun, may_end = threading.Event(), threading.Event()

    def ends(number: Any) -> None:
        has_begun.set()
        may_end.wait(SOON)

    task: Any = app.task(queue="ends", retry=ONCE, timeout=limit, batch=batch)(ends)  # type: ignore[call-overload]

    @app.task(queue="blocks", retry=ONCE)
    async def blocks(number: int) -> None:
        await task.enqueue(1)
        while not has_begun.is_set():
            await asyncio.sleep(0)
        may_end.set()
        began = time.monotonic()
        blocks_until(lambda: time.monotonic() > began + 3 * limit)

    async def story() -> None:
        await app.setup()
        await blocks.enqueue(1)
        working = asyncio.ensure_future(app.run())
        queue = await app.queue(task)
        await _until_settled(await app.queue(blocks), queue)
        app.stop()
        summary = await working
        assert await queue.dead_letters() == []
        assert (summary.done, summary.dead) == (2, 0), "the outcome waited for the loop"

    try:
        run(story())
    finally:
        may_end.set()


@pytest.mark.parametrize("batch", [None, 1])
def test_time_limit_ends_with_a_coroutine(batch: int | None, url: str, run: Any) -> None:
    app, limit = trunkline.App(url), 0.2
    has_begun = has_returned = False

    async def ends(numbers: Any) -> None:
        nonlocal has_begun, has_returned
        if numbers in (1, [1]):
            while not has_begun:
                await asyncio.sleep(0)
            has_returned = True
            return
        has_begun = True
        while not has_returned:
            await asyncio.sleep(0)
        # The loop passes the other handler's outcome on only after this step.
        began = time.monotonic()
        blocks_until(lambda: time.monotonic() > began + 3 * limit)

    task: Any = app.task(queue="ends", retry=ONCE, timeout=limit, batch=batch)(ends)  # type: ignore[call-overload]

    async def story() -> None:
        await app.setup()
        await task.enqueue_many([1, 2])
        summary = await app.drain()
        assert (summary.done, summary.dead) == (1, 1), "only the handler that blocks has exceeded its limit"

    run(story())


@pytest.mark.parametrize("batch", [None, 5])
def test_messages_whose_handlers_do_not_begin_are_released(batch: int | None, url: str, run: Any, caplog: pytest.LogCaptureFixture) -> None:
    app, begun = trunkline.App(url), list[int]()

    @app.task(queue="blocks", retry=ONCE)
    async def blocks(number: int) -> None:
        app.queue_sync(waits).enqueue_many(range(10))
        with psycopg.connect(url, autocommit=True) as sql:

            def is_released() -> bool:
                row = sql.execute("select min(released) from trunkline.queue_waits").fetchone()
                return bool(row and row[0])

            blocks_until(is_released)

    async def one(number: int) -> None:
        begun.append(number)

    async def several(numbers: list[int]) -> None:
        begun.extend(numbers)

    handler: Any = one if batch is None else several
    waits: Any = app.task(queue="waits", max_attempts=1, retry=ONCE, lease=1, batch=batch)(handler)  # type: ignore[call-overload]

    def is_told() -> bool:
        return any("the event loop is blocked" in one.getMessage() for one in caplog.records)

    async def story() -> None:
        await app.setup()
        await blocks.enqueue(1)
        working = asyncio.ensure_future(app.run())
        queues = [await app.queue(blocks), await app.queue(waits)]
        await _until_settled(*queues)
        app.stop()
        summary = await working
        for queue in queues:
            assert await queue.dead_letters() == []
        assert sorted(begun) == list(range(10)), "each began once"
        assert (summary.retried, summary.dead, summary.lost) == (0, 0, 0) and summary.released >= 10
        while not is_told():  # another thread passes the event on
            await asyncio.sleep(0.01)
        assert not any("dead letter" in one.getMessage() for one in caplog.records)

    run(story())


def test_time_limit_ends_the_wait_for_a_handler_that_acknowledges_elsewhere(url: str, run: Any) -> None:
    app, may_commit, has_ended = trunkline.App(url), threading.Event(), threading.Event()

    @app.task(queue="pays", retry=ONCE, timeout=0.2)
    def pays(number: int, context: trunkline.Context) -> None:
        with psycopg.connect(url) as connection:
            context.ends_elsewhere_in_thread()
            transaction.queue(connection, pays).ack(context.lease)
            may_commit.wait(SOON)
        has_ended.set()

    async def story() -> None:
        await app.setup()
        await pays.enqueue(1)
        working = asyncio.ensure_future(app.run())
        while not app.running():
            await asyncio.sleep(0.01)
        while app.running():
            await asyncio.sleep(0.01)
        app.stop()
        summary = await asyncio.wait_for(working, SOON / 2)
        assert (summary.lost, summary.dead) == (1, 0), "the worker does not wait for the open transaction"
        may_commit.set()
        while not has_ended.is_set():
            await asyncio.sleep(0.01)
        assert (await (await app.queue(pays)).stats()).messages == 0

    try:
        run(story())
    finally:
        may_commit.set()


@pytest.mark.parametrize("how", ["lease", "lease of a consumer", "iteration"])
def test_messages_that_arrive_while_the_loop_is_blocked_are_leased_again(how: str, url: str, run: Any) -> None:
    async def story() -> None:
        _, queue = await opened(url, int, lease=2, max_attempts=1)
        consumer = queue.consumer()
        await queue.enqueue_many(range(10))
        seen = sync.Db.connect(url).queue("mails", int)

        async def received() -> list[Any]:
            if how == "lease":
                return await queue.lease(10)
            if how == "lease of a consumer":
                return await consumer.lease(10, within=SOON)
            return [await consumer.__anext__() for _ in range(10)]

        receiving = asyncio.ensure_future(received())
        await asyncio.sleep(0)  # the call has begun
        blocks_until(lambda: seen.stats().leased == 10)
        blocks_until(lambda: seen.stats().due == 10)
        got = await receiving
        assert sorted(one.payload for one in got) == list(range(10))
        assert {one.attempts for one in got} == {1}, "no attempt was counted"
        assert consumer._next_count == consumer._prefetch, "no payload takes long to decode"
        await queue.ack(got)
        assert (await queue.stats()).messages == 0

    run(story())


@pytest.mark.parametrize("face", ["sync", "async"])
def test_prefetched_messages_of_a_slow_caller_lose_no_attempt(face: str, url: str, run: Any) -> None:
    async def story() -> None:
        _, queue = await opened(url, int, lease=2, max_attempts=1)
        await queue.enqueue_many(range(10))
        theirs = sync.Db.connect(url).queue("mails", int)
        consumer: Any = queue.consumer() if face == "async" else theirs.consumer()
        first = await consumer.__anext__() if face == "async" else next(consumer)
        await queue.ack(first)
        blocks_until(lambda: theirs.stats().due == 9)
        others = theirs.lease(9, for_=60)
        assert len(others) == 9 and {one.attempts for one in others} == {1}, "no attempt was counted"
        theirs.release(others)
        rest = [await consumer.__anext__() if face == "async" else next(consumer) for _ in range(9)]
        assert sorted(one.payload for one in [first, *rest]) == list(range(10))
        await queue.ack(rest)
        consumer.close()
        assert (await queue.stats()).messages == 0

    run(story())


@pytest.mark.parametrize("face", ["sync", "async"])
def test_closed_consumer_releases_what_was_not_late(face: str, url: str, run: Any) -> None:
    async def story() -> None:
        _, queue = await opened(url, int, max_attempts=1)
        await queue.enqueue_many(range(10))
        theirs = sync.Db.connect(url).queue("mails", int)
        consumer: Any = queue.consumer() if face == "async" else theirs.consumer()
        for _ in range(2):
            first = await consumer.__anext__() if face == "async" else next(consumer)
            assert theirs.stats().leased == 10
            consumer.close()
            while (await queue.stats()).due != 9:
                await asyncio.sleep(0.01)
            await queue.release(first)
        assert (await queue.stats()).due == 10

    run(story())


def test_interrupted_caller_may_begin_its_last_message_again(url: str, run: Any) -> None:
    async def story() -> None:
        _, queue = await opened(url, int)
        await queue.enqueue_many(range(3))
        offer = sync.Db.connect(url).queue("mails", int).native.lease(None, 3)
        first, second, third = offer.accept(None, True) or ()
        assert offer.begin(first) and offer.begin(first)
        assert offer.begin(second) and not offer.begin(first)
        assert offer.rest([second, third]) == [second.lease, third.lease]
        assert not offer.begin(third)
        await queue.release([first, second, third])

    run(story())


class Fetched:
    """The calls that the running loop has fetched, and the descriptor that wakes it for others."""

    def __init__(self) -> None:
        self.count, self._descriptor = 0, -1
        loop: Any = asyncio.get_running_loop()
        create_task, add_reader = loop.create_task, loop.add_reader

        def counted(work: Any, **named: Any) -> Any:
            self.count += work.__qualname__.startswith(("Life._handler", "Life._batches"))
            return create_task(work, **named)

        def noted(descriptor: int, callback: Any, *arguments: Any) -> Any:
            if getattr(callback, "__name__", "") == "_news":
                self._descriptor = descriptor
            return add_reader(descriptor, callback, *arguments)

        loop.create_task, loop.add_reader = counted, noted

    def is_woken(self) -> bool:
        """Returns true if the worker has news that the loop has not fetched."""
        return bool(select.select([self._descriptor], [], [], 0)[0])


@pytest.mark.parametrize(("how", "batch"), [("given back", None), ("given back", 2), ("given up", None), ("cancelled", None)])
def test_handler_does_not_begin_once_its_call_is_over(how: str, batch: int | None, url: str, run: Any) -> None:
    app, returned = trunkline.App(url), asyncio.Event()
    fetched, begun = list[Fetched](), list[Any]()

    @app.task(queue="blocks")
    async def blocks(number: int) -> None:
        id = app.queue_sync(waits).enqueue(1)
        while fetched[0].count < 2:
            await asyncio.sleep(0)
        # The other handler begins in this turn of the loop, once this one has returned.
        if how == "cancelled":
            app.queue_sync(waits).cancel(id)
        else:
            app.stop()
        with psycopg.connect(url, autocommit=True) as sql:

            def is_given_back() -> bool:
                return sql.execute("select 1 from trunkline.queue_waits where released > 0").fetchone() is not None

            blocks_until(is_given_back if how == "given back" else fetched[0].is_woken)
        returned.set()

    async def one(number: Any) -> None:
        begun.append(number)

    waits: Any = app.task(queue="waits", max_attempts=1, batch=batch)(one)  # type: ignore[call-overload]

    async def story() -> None:
        await app.setup()
        fetched.append(Fetched())
        await blocks.enqueue(1)
        working = asyncio.ensure_future(app.run(shutdown_after=0.1))
        await returned.wait()
        app.stop()
        summary = await working
        assert begun == [], "the message was no longer the handler's"
        assert (summary.dead, summary.retried) == (0, 0)
        queue = await app.queue(waits)
        if how == "cancelled":
            assert summary.lost == 1 and (await queue.stats()).messages == 0
        else:
            (message,) = await queue.lease(1)
            assert message.attempts == 1, "no attempt was counted"

    run(story())
