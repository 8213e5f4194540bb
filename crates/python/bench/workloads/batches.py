"""Measures four callers. Each awaits a batch of a thousand messages before it sends the next
one."""

from __future__ import annotations

import asyncio
import time

from bench.contenders import Contender
from bench.message import message
from bench.workloads import Measured

CALLERS, BATCH = 4, 1_000


async def run(contender: Contender, seconds: float) -> Measured:
    sent = 0
    batch = [message(n) for n in range(BATCH)]
    began = time.perf_counter()
    end = began + seconds

    async def caller() -> None:
        nonlocal sent
        while time.perf_counter() < end:
            await contender.enqueue_many(batch)
            sent += BATCH

    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    took = time.perf_counter() - began
    return {"messages": sent, "seconds": took, "messages_per_s": sent / took, "lost": sent - await contender.waiting()}
