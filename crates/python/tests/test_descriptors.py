"""A worker that has ended keeps no descriptor open, even before the garbage collector runs."""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections.abc import Iterator
from typing import Any

import pytest
import trunkline

app = trunkline.App()
WORKERS = 5


@app.task()
async def in_loop(number: int) -> None: ...


@app.task()
def in_thread(number: int) -> None: ...


def nothing(number: int) -> None: ...


in_process = app.task(place="process", queue="in_process")(nothing)


@pytest.fixture
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def _opened() -> set[str]:
    """Returns the files, pipes and sockets that this process has open."""
    found = set[str]()
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            found.add(f"{descriptor}: {os.readlink(f'/proc/self/fd/{descriptor}')}")
        except FileNotFoundError:
            pass  # that of the list itself
    return found


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="this system has no list of descriptors")
@pytest.mark.parametrize("task", [in_loop, in_thread, in_process], ids=lambda task: task.queue)
@pytest.mark.parametrize("how", ["drain", "run"])
def test_worker_that_has_ended_keeps_no_descriptor(task: Any, how: str, url: str, run: Any, without_collector: None) -> None:
    app.url = url

    async def works() -> None:
        await task.enqueue(1)
        if how == "drain":
            assert (await app.drain(queues=[task.queue], processes=1)).done == 1
            return
        working = asyncio.ensure_future(app.run(queues=[task.queue], processes=1))
        queue = await app.queue(task)
        while (await queue.stats()).messages:
            await asyncio.sleep(0.01)
        app.stop()
        assert (await working).done == 1

    async def story() -> None:
        await app.setup()
        await works()  # the first worker opens the connections
        before = _opened()
        for _ in range(WORKERS):
            await works()
        # The thread that used the pipe of a process closes it a moment later.
        limit = time.monotonic() + 10
        while len(more := _opened() - before) >= WORKERS and time.monotonic() < limit:
            await asyncio.sleep(0.01)
        assert len(more) < WORKERS, "at most another connection, and nothing for each worker"

    run(story())
