"""A handler that cannot start costs its message no attempt."""

from __future__ import annotations

import logging
import time
from typing import Any

import pytest
import trunkline
from trunkline import os_threads
from trunkline.worker.processes import _Process
from trunkline.worker.threads import Threads

app = trunkline.App()


@app.task(queue="alone", max_attempts=1)
def alone(number: int) -> None: ...


@app.task(queue="limited", max_attempts=1, timeout=0.5)
def limited(number: int) -> None: ...


@app.task(queue="batches", max_attempts=1, batch=2)
def batches(numbers: list[int]) -> None: ...


def nothing(number: int) -> None: ...


in_process = app.task(queue="in_process", place="process", max_attempts=1)(nothing)


@pytest.mark.parametrize(("task", "least"), [(alone, 0.9), (limited, 0.2), (batches, 0.9)])
def test_handler_whose_thread_cannot_start_costs_no_attempt(
    task: Any, least: float, url: str, run: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    app.url = url
    start, refused = os_threads.start, list[float]()

    def refuses(function: Any, name: str) -> Any:
        """Refuses the first threads for handlers, as a system does that permits no more."""
        if name == "trunkline-handler" and len(refused) < 3:
            refused.append(time.monotonic())
            raise RuntimeError("can't start new thread")
        return start(function, name)

    monkeypatch.setattr(os_threads, "start", refuses)

    async def story() -> None:
        await app.setup()
        await task.enqueue_many(range(6))
        with caplog.at_level(logging.WARNING, "trunkline.worker"):
            assert (await app.drain(queues=[task.queue], concurrency=1)).done == 6
        assert await (await app.queue(task)).dead_letters() == []

    run(story())
    told = [one.getMessage() for one in caplog.records if "cannot start" in one.getMessage()]
    assert len(told) == 3 and all(task.queue in one and "can't start new thread" in one for one in told)
    assert min(refused[1] - refused[0], refused[2] - refused[1]) > least, "the worker waits before it tries again"


def test_process_whose_call_has_no_thread_stays(url: str, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    app.url = url
    made, call, ready = list[_Process](), Threads.call, _Process.ready

    def ready_and_counted(process: _Process) -> None:
        made.append(process)
        ready(process)

    async def without_idle_threads(threads: Threads, function: Any) -> Any:
        """Calls the process, for the first time, when no thread is idle and none can start."""
        if not made or "exchange" not in function.__code__.co_names or calls:
            return await call(threads, function)
        calls.append(function)
        threads.close()
        threads._is_closed = False
        with monkeypatch.context() as limited:
            limited.setattr(os_threads, "start", _refuses)
            return await call(threads, function)

    calls: list[Any] = []
    monkeypatch.setattr(_Process, "ready", ready_and_counted)
    monkeypatch.setattr(Threads, "call", without_idle_threads)

    async def story() -> None:
        await app.setup()
        await in_process.enqueue(1)
        summary = await app.drain(queues=["in_process"], processes=1)
        assert (summary.done, summary.dead, len(calls), len(made)) == (1, 0, 1, 1)

    run(story())


def _refuses(function: Any, name: str) -> Any:
    raise RuntimeError("can't start new thread")
