"""A function that decides about retries is asked after each failure, however the handler failed."""

from __future__ import annotations

import asyncio
import time
from threading import Event
from typing import Any

import pytest
import trunkline

#: The number of seconds after which a condition that did not become true fails a test.
SOON = 20.0


class Never:
    """A policy that makes each failed message a dead letter, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, str]] = []

    def __call__(self, attempt: int, error: BaseException) -> None:
        self.asked.append((attempt, f"{type(error).__name__}: {error}"))


class Unreadable:
    """A codec whose payloads cannot be read."""

    column = "int8"

    def encode(self, payload: int, /) -> bytes:
        return payload.to_bytes(8, "big")

    def decode(self, payload: bytes, /) -> int:
        raise ValueError("unreadable")


def waits_in_process(number: int) -> None:
    Event().wait()


@pytest.mark.parametrize("kind", ["loop", "thread", "process", "batch"])
def test_policy_decides_after_a_timeout(kind: str, url: str, run: Any) -> None:
    app, may_end, never = trunkline.App(url), Event(), Never()

    async def in_loop(number: int) -> None:
        await asyncio.Event().wait()

    def in_thread(number: int) -> None:
        may_end.wait(SOON)

    async def in_batch(numbers: list[int]) -> None:
        await asyncio.Event().wait()

    handler: Any = {"loop": in_loop, "thread": in_thread, "process": waits_in_process, "batch": in_batch}[kind]
    options: dict[str, Any] = {"batch": 2} if kind == "batch" else {"place": kind}
    task: Any = app.task(queue="late", timeout=0.05, retry=never, **options)(handler)

    async def story() -> None:
        await app.setup()
        await task.enqueue(1)
        summary = await app.drain(processes=1)
        assert (summary.dead, summary.retried) == (1, 0)
        assert never.asked == [(1, "TimeoutError: the handler took longer than 0.05 s")]
        (letter,) = await (await app.queue(task)).dead_letters()
        assert letter.error.startswith("TimeoutError: the handler took longer than 0.05 s")

    try:
        run(story())
    finally:
        may_end.set()


def test_late_message_waits_for_its_policy_while_the_loop_is_blocked(url: str, run: Any, caplog: pytest.LogCaptureFixture) -> None:
    app, has_begun, may_end, never = trunkline.App(url), Event(), Event(), Never()

    def is_blocked() -> bool:
        return any("wait for their retry policies" in one.getMessage() for one in caplog.records)

    @app.task(queue="late", timeout=0.5, retry=never)
    def late(number: int) -> None:
        has_begun.set()
        may_end.wait(SOON)

    @app.task(queue="blocks", retry=trunkline.Fixed(0, max_attempts=1))
    async def blocks(number: int) -> None:
        while not has_begun.is_set():
            await asyncio.sleep(0)
        limit = time.monotonic() + SOON
        while not is_blocked():  # another thread passes the warning on
            assert time.monotonic() < limit, "the worker did not wait for the loop"
            time.sleep(0.005)

    async def story() -> None:
        await app.setup()
        await late.enqueue(1)
        await blocks.enqueue(1)
        summary = await app.drain()
        assert (summary.done, summary.dead, summary.retried) == (1, 1, 0)
        assert never.asked == [(1, "TimeoutError: the handler took longer than 0.5 s")]

    try:
        run(story())
    finally:
        may_end.set()


@pytest.mark.parametrize("batch", [None, 2])
def test_policy_decides_about_an_unreadable_payload(batch: int | None, url: str, run: Any) -> None:
    app, never = trunkline.App(url), Never()

    async def handle(numbers: Any) -> None: ...

    task: Any = app.task(queue="unreadable", type=Unreadable(), retry=never, batch=batch)(handle)  # type: ignore[call-overload]

    async def story() -> None:
        await app.setup()
        await task.enqueue(1)
        summary = await app.drain()
        assert (summary.dead, summary.retried) == (1, 0)
        assert never.asked == [(1, "ValueError: unreadable")]
        (letter,) = await (await app.queue(task)).dead_letters()
        assert letter.error.startswith("the payload cannot be read: ValueError: unreadable")

    run(story())


@pytest.mark.parametrize("batch", [None, 2])
def test_policy_decides_about_a_handler_that_cancels_itself(batch: int | None, url: str, run: Any) -> None:
    app, never = trunkline.App(url), Never()

    async def cancels(numbers: Any) -> None:
        raise asyncio.CancelledError

    task: Any = app.task(queue="cancels", retry=never, batch=batch)(cancels)  # type: ignore[call-overload]

    async def story() -> None:
        await app.setup()
        await task.enqueue(1)
        summary = await app.drain()
        assert (summary.dead, summary.retried) == (1, 0)
        assert never.asked == [(1, "CancelledError: the handler was cancelled")]

    run(story())
