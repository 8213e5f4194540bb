"""Memory does not grow with the number of messages or failures.

``TRUNKLINE_LONG=100000`` sends a million messages.
"""

from __future__ import annotations

import asyncio
import gc
import os
from typing import Any

import trunkline

from opened import opened

EACH = int(os.environ.get("TRUNKLINE_LONG", "4000"))
ROUNDS = 10
#: The bytes that a round may add on average after the warm-up: the allocator's noise, and far less
#: than one object per message.
NOISE = 256 * 1024 + 8 * EACH


def resident() -> int:
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_memory_stays_flat_over_messages_and_exceptions(url: str) -> None:
    app = trunkline.App(url)

    @app.task(retry=trunkline.Fixed(0), max_attempts=2)
    async def fails(number: int) -> None:
        raise ValueError(number)

    import logging

    logging.getLogger("trunkline.worker").setLevel(logging.CRITICAL)

    async def story() -> None:
        _, mails = await opened(url)
        await app.setup()
        failing = await app.queue(fails)
        sizes: list[int] = []
        for _ in range(ROUNDS):
            for start in range(0, EACH, 1_000):
                await asyncio.gather(*(mails.enqueue({"n": n}) for n in range(start, start + 1_000)))
                got: list[Any] = await mails.lease(1_000)
                await mails.ack(got)
                calls = [mails.ack(message) for message in got[:250]]
                lost = await asyncio.gather(*calls, return_exceptions=True)
                assert all(isinstance(one, trunkline.LeaseLost) for one in lost)
            await failing.enqueue_many(range(EACH // 2))
            await app.drain()
            await failing.discard("all")
            sizes.append(resident())
        grown = (sizes[-1] - sizes[ROUNDS // 2]) / (ROUNDS - ROUNDS // 2)
        assert grown < NOISE, [size // 1024 for size in sizes]

    asyncio.run(story())
    logging.getLogger("trunkline.worker").setLevel(logging.NOTSET)
