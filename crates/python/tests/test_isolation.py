"""Messages whose lease expired run one after another, unless their task says that they cannot crash
the process."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
import trunkline
from trunkline.testing.time import shift

#: The number of messages that have to run together, and the number of seconds for which each waits
#: for that. It is less than the second after which the next isolated message starts.
TOGETHER, LONGEST = 4, 0.4


@pytest.mark.parametrize("batch", [None, 1])
@pytest.mark.parametrize("isolates", [True, False])
def test_expired_messages_run_together_if_task_permits(isolates: bool, batch: int | None, url: str, run: Any) -> None:
    app, running, most, all_run = trunkline.App(url), set[asyncio.Task[Any] | None](), 0, asyncio.Event()

    async def handle(numbers: Any) -> None:
        nonlocal most
        running.add(asyncio.current_task())
        most = max(most, len(running))
        if most >= TOGETHER:
            all_run.set()
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(all_run.wait(), LONGEST)
        running.discard(asyncio.current_task())

    options: dict[str, Any] = {} if isolates else {"isolate_after_crash": False}
    task: Any = app.task(queue="crashed", type=int, batch=batch, **options)(handle)  # type: ignore[call-overload]

    async def story() -> None:
        await app.setup()
        for number in range(2 * TOGETHER):
            await task.enqueue(number)
        queue = await app.queue(task)
        assert len(await queue.lease(2 * TOGETHER)) == 2 * TOGETHER
        await shift(queue, timedelta(hours=1))
        assert (await app.drain()).done == 2 * TOGETHER

    run(story())
    assert (most >= TOGETHER) == (not isolates), most
