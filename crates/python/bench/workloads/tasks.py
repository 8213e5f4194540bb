"""Measures a thousand tasks. Each awaits its message before it sends the next one."""

from __future__ import annotations

import asyncio
import time

from bench.contenders import Contender
from bench.message import message
from bench.workloads import Measured

TASKS = 1_000


async def run(contender: Contender, seconds: float, tasks: int = TASKS) -> Measured:
    sent = 0
    began = time.perf_counter()
    end = began + seconds
    latencies: list[float] = []

    async def caller() -> None:
        nonlocal sent
        now = time.perf_counter()
        while sent == 0 or now < end:  # at least one message, however slow the machine is
            sent += 1
            await contender.enqueue(message(sent))
            then, now = now, time.perf_counter()
            latencies.append(now - then)
            await asyncio.sleep(0) if tasks > 1 else None

    await asyncio.gather(*(caller() for _ in range(tasks)))
    took = time.perf_counter() - began
    latencies.sort()
    return {
        "messages": len(latencies),
        "seconds": took,
        "messages_per_s": len(latencies) / took,
        "p50_ms": latencies[len(latencies) // 2] * 1e3,
        "p99_ms": latencies[len(latencies) * 99 // 100] * 1e3,
        "lost": len(latencies) - await contender.waiting(),
    }
