"""Makes a million attempts fail with an exception, until the messages are dead letters. Measures
whether the exceptions stay in memory."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import Any

import trunkline

from bench.contenders import Contender
from bench.memory import now_mib, peak_mib
from bench.message import message
from bench.place import here
from bench.workloads import Measured

EXCEPTIONS, ATTEMPTS, BATCH, WAITING = 1_000_000, 1, 1_000, 10_000


async def run(contender: Contender, seconds: float) -> Measured:
    messages = int(EXCEPTIONS / ATTEMPTS * min(1.0, seconds / 4))
    # Without this, the run would measure how long it takes to write a million tracebacks.
    logging.getLogger("trunkline").setLevel(logging.CRITICAL)
    app = trunkline.App(here().postgres)
    raised = 0

    @app.task(queue="bench", retry=trunkline.Fixed(0, max_attempts=ATTEMPTS))
    async def handle(message: dict[str, Any]) -> None:
        nonlocal raised
        raised += 1
        raise ValueError(f"message {message['n']} cannot be handled")

    began = time.perf_counter()
    worker = asyncio.create_task(app.run(concurrency=1_000))
    tenth = 0.0
    for first in range(0, messages, BATCH):
        await contender.enqueue_many([message(n) for n in range(first, first + BATCH)])
        while first * ATTEMPTS - raised > WAITING:
            await asyncio.sleep(0.001)
        if not tenth and raised >= messages * ATTEMPTS / 10:
            tenth = now_mib()
    while raised < messages * ATTEMPTS:
        await asyncio.sleep(0.01)
    took = time.perf_counter() - began
    end = now_mib()
    worker.cancel()
    with suppress(asyncio.CancelledError):
        await worker
    queue = await (await app.db()).queue("bench", dict)
    return {
        "messages": raised,
        "seconds": took,
        "messages_per_s": raised / took,
        "tenth_mib": tenth,
        "end_mib": end,
        "peak_mib": peak_mib(),
        "lost": messages - (await queue.stats()).dead,
    }
