"""A signal handler that raises within the event loop's own code loses no call and no answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import trunkline
from trunkline._trunkline import Station
from trunkline.worker import life

from opened import opened


class Interrupted(Exception):
    """The error of a signal handler."""


class Interrupts:
    """Raises the next time when the running loop is asked to call the function of this name soon."""

    def __init__(self, name: str) -> None:
        self.left, self._name = 0, name
        loop: Any = asyncio.get_running_loop()
        self._call_soon = loop.call_soon
        loop.call_soon = self

    def __call__(self, callback: Any, *arguments: Any, **named: Any) -> Any:
        if self.left and getattr(callback, "__name__", None) == self._name:
            self.left -= 1
            raise Interrupted
        return self._call_soon(callback, *arguments, **named)


def test_enqueues_after_an_interrupted_one_are_sent(url: str, run: Any) -> None:
    async def story() -> None:
        interrupts = Interrupts("flush")
        _, queue = await opened(url, int)
        interrupts.left = 1
        # The first is sent at once, and the others wait for the end of the loop's turn.
        enqueues = [asyncio.ensure_future(queue.enqueue(number)) for number in range(4)]
        first, interrupted, *later = await asyncio.wait_for(asyncio.gather(*enqueues, return_exceptions=True), 10)
        assert isinstance(interrupted, Interrupted) and interrupts.left == 0
        assert all(isinstance(one, int) for one in (first, *later))
        assert await asyncio.wait_for(queue.enqueue(4), 10)
        while (await queue.stats()).due != 5:  # the outcome of the interrupted call is unknown to its caller
            await asyncio.sleep(0.01)

    run(story())


def test_answer_of_an_interrupted_handler_counts(url: str, run: Any) -> None:
    app = trunkline.App(url)

    @app.task(queue="answers", max_attempts=1)
    async def answers(number: int) -> None: ...

    async def story() -> None:
        interrupts = Interrupts("_settle")
        await app.setup()
        await answers.enqueue_many(range(3))
        interrupts.left = 1
        summary = await asyncio.wait_for(app.drain(concurrency=1), 30)
        assert (summary.done, summary.dead, interrupts.left) == (3, 0, 0)

    run(story())


class Gathering:
    """A station that returns its first three news at once."""

    def __init__(self, *arguments: Any) -> None:
        self._station, self._gathered, self._is_gathered = Station(*arguments), list[Any](), False

    def news(self) -> list[Any]:
        self._gathered += self._station.news()
        if len(self._gathered) < 3 and not self._is_gathered:
            return []
        self._is_gathered = True
        news, self._gathered = self._gathered, []
        return news

    def __getattr__(self, name: str) -> Any:
        return getattr(self._station, name)


def test_messages_are_handled_although_a_start_is_interrupted(url: str, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    app = trunkline.App(url)

    @app.task(queue="starts", max_attempts=1)
    async def starts(number: int) -> None: ...

    async def story() -> None:
        await app.setup()
        await starts.enqueue_many(range(3))
        loop: Any = asyncio.get_running_loop()
        create_task, left = loop.create_task, 1

        def interrupted(work: Any, **named: Any) -> Any:
            nonlocal left
            if left and work.__qualname__.startswith("Life._handler"):
                left -= 1
                work.close()
                raise Interrupted
            return create_task(work, **named)

        loop.create_task = interrupted
        summary = await asyncio.wait_for(app.drain(concurrency=3), 30)
        assert (summary.done, summary.dead, left) == (3, 0, 0)

    monkeypatch.setattr(life, "Station", Gathering)
    run(story())
