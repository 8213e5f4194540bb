"""Enqueues and handles an hour's worth of messages, a thousand per second, as fast as possible in
one process, and measures the process's memory."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any

import trunkline

from bench.contenders import Contender
from bench.memory import now_mib, peak_mib
from bench.message import message
from bench.place import here
from bench.workloads import Measured

MESSAGES, BATCH, WAITING = 3_600_000, 1_000, 20_000


async def run(contender: Contender, seconds: float) -> Measured:
    count = int(MESSAGES * min(1.0, seconds / 4))
    seen = bytearray(count)
    app = trunkline.App(here().postgres)
    handled = 0

    @app.task(queue="bench")
    async def handle(message: dict[str, Any]) -> None:
        nonlocal handled
        seen[message["n"]] += 1
        handled += 1

    began = time.perf_counter()
    worker = asyncio.create_task(app.run(concurrency=1_000))
    tenth = 0.0
    for first in range(0, count, BATCH):
        await contender.enqueue_many([message(n) for n in range(first, first + BATCH)])
        while first - handled > WAITING:
            await asyncio.sleep(0.001)
        if not tenth and handled >= count / 10:
            tenth = now_mib()
    while handled < count:
        await asyncio.sleep(0.01)
    took = time.perf_counter() - began
    end = now_mib()
    worker.cancel()
    with suppress(asyncio.CancelledError):
        await worker
    return {
        "messages": count,
        "seconds": took,
        "messages_per_s": count / took,
        "tenth_mib": tenth,
        "end_mib": end,
        "peak_mib": peak_mib(),
        "lost": seen.count(0) + await contender.waiting(),
    }
