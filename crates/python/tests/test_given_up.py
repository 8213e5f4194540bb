"""A worker logs why it has given up on handlers, and limits how many of them may still run."""

from __future__ import annotations

import asyncio
import logging
from threading import Barrier, Event, Semaphore
from typing import Any

import pytest
import trunkline
from trunkline.worker.hanging import TooManyHang

ONCE = trunkline.Fixed(0, max_attempts=1)


def warnings(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """Returns what the worker logged from the level of warnings on, except dead letters."""
    return [one for one in caplog.records if one.levelno >= logging.WARNING and one.name == "trunkline.worker"]


@pytest.mark.parametrize("kind", ["loop", "thread", "batch"])
def test_timeouts_are_warnings(kind: str, url: str, run: Any, caplog: pytest.LogCaptureFixture) -> None:
    app, may_end = trunkline.App(url), Event()

    async def in_loop(number: int) -> None:
        await asyncio.Event().wait()

    def in_thread(number: int) -> None:
        may_end.wait(30)

    async def in_batch(numbers: list[int]) -> None:
        await asyncio.Event().wait()

    handler: Any = {"loop": in_loop, "thread": in_thread, "batch": in_batch}[kind]
    options: dict[str, Any] = {"batch": 2} if kind == "batch" else {}
    task: Any = app.task(queue="late", timeout=0.1, retry=ONCE, **options)(handler)

    async def story() -> None:
        await app.setup()
        ids = await task.enqueue_many([1, 2])
        assert (await app.drain()).dead == 2
        told = sorted(warnings(caplog), key=lambda one: one.id)  # type: ignore[attr-defined]
        assert [one.getMessage() for one in told] == [f"message {id} of late: the handler took longer than 0.1 s" for id in ids]
        assert [(one.queue, one.id, one.attempt) for one in told] == [("late", id, 1) for id in ids]  # type: ignore[attr-defined]

    try:
        run(story())
    finally:
        may_end.set()


def test_handler_that_cancels_itself_is_a_warning(url: str, run: Any, caplog: pytest.LogCaptureFixture) -> None:
    app = trunkline.App(url)

    @app.task(queue="cancels", retry=ONCE)
    async def cancels(number: int) -> None:
        raise asyncio.CancelledError

    async def story() -> None:
        await app.setup()
        id = await cancels.enqueue(1)
        assert (await app.drain()).dead == 1
        (told,) = warnings(caplog)
        assert told.getMessage() == f"message {id} of cancels: the handler was cancelled"

    run(story())


def test_handler_that_outlives_the_shutdown_is_a_warning(url: str, run: Any, caplog: pytest.LogCaptureFixture) -> None:
    app = trunkline.App(url)
    begun = asyncio.Event()

    @app.task(queue="outlives")
    async def outlives(number: int) -> None:
        begun.set()
        await asyncio.Event().wait()

    async def story() -> None:
        await app.setup()
        id = await outlives.enqueue(1)
        working = asyncio.ensure_future(app.run(shutdown_after=0.1))
        await begun.wait()
        app.stop()
        assert (await working).released == 1
        (told,) = warnings(caplog)
        assert told.getMessage() == f"message {id} of outlives: the handler did not end before the worker, which releases the message"

    run(story())


def test_worker_ends_once_too_many_handlers_ignore_their_cancellation(url: str, run: Any) -> None:
    app = trunkline.App(url)
    may_end = False
    running = 0

    @app.task(queue="ignores", timeout=0.05)
    async def ignores(number: int) -> None:
        nonlocal running
        running += 1
        while not may_end:
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                pass

    async def story() -> None:
        nonlocal may_end
        await app.setup()
        await ignores.enqueue_many(range(1000))
        try:
            with pytest.raises(TooManyHang, match="16 handlers outlived their timeouts and still run"):
                await asyncio.wait_for(app.run(concurrency=1), 30)
            assert running < 200
        finally:
            may_end = True

    run(story())


def test_worker_ends_once_too_many_threads_hang(url: str, run: Any) -> None:
    app, may_end = trunkline.App(url), Event()

    @app.task(queue="hangs", timeout=0.2)
    def hangs(number: int) -> None:
        may_end.wait(60)

    async def story() -> None:
        await app.setup()
        await hangs.enqueue_many(range(1000))
        with pytest.raises(TooManyHang, match="16 handlers outlived their timeouts and still run"):
            await asyncio.wait_for(app.run(concurrency=4), 30)

    try:
        run(story())
    finally:
        may_end.set()


class UntilEnded(logging.Handler):
    """Lets the worker log that it has given up on a handler only when the handler's thread has
    reported its end."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._reports = Semaphore(0)
        loop: Any = asyncio.get_running_loop()
        call_soon = loop.call_soon_threadsafe

        def reported(*arguments: Any, **named: Any) -> Any:
            handle = call_soon(*arguments, **named)
            self._reports.release()
            return handle

        loop.call_soon_threadsafe = reported

    def emit(self, record: logging.LogRecord) -> None:
        if record.name == "trunkline.worker" and "took longer than" in record.getMessage():
            self._reports.acquire(timeout=10)


def test_threads_that_end_when_cancelled_do_not_count_as_hanging(url: str, run: Any) -> None:
    app, log = trunkline.App(url), logging.getLogger("trunkline.worker")

    @app.task(queue="stops", timeout=0.05, retry=ONCE)
    def stops(number: int, context: trunkline.Context) -> None:
        context.wait_cancelled(30)

    async def story() -> None:
        await app.setup()
        await stops.enqueue_many(range(20))
        log.addHandler(until_ended := UntilEnded())
        try:
            assert (await app.drain(concurrency=4)).dead == 20
        finally:
            log.removeHandler(until_ended)

    run(story())


def test_threads_that_clean_up_do_not_count_as_hanging(url: str, run: Any) -> None:
    app, cleaned = trunkline.App(url), Barrier(40)

    @app.task(queue="cleans", timeout=0.05, retry=ONCE)
    def cleans(number: int, context: trunkline.Context) -> None:
        context.wait_cancelled(30)
        cleaned.wait(30)

    async def story() -> None:
        await app.setup()
        await cleans.enqueue_many(range(40))
        assert (await app.drain(concurrency=40)).dead == 40

    run(story())


def test_handlers_that_clean_up_do_not_count_as_hanging(url: str, run: Any) -> None:
    app = trunkline.App(url)
    cleaned = 0

    @app.task(queue="cleans", timeout=0.05, retry=ONCE)
    async def cleans(number: int) -> None:
        nonlocal cleaned
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.1)
            cleaned += 1

    async def story() -> None:
        await app.setup()
        await cleans.enqueue_many(range(40))
        assert (await app.drain(concurrency=40)).dead == 40
        while cleaned < 40:
            await asyncio.sleep(0.01)

    run(story())
