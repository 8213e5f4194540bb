"""Sends messages through a private PostgreSQL, and counts each of them."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Sequence

from ._trunkline import Cluster
from .db import Db
from .queue import Queue


async def _demo(url: str, messages: int, callers: int) -> dict[str, float]:
    db = await Db.connect(url)
    await db.migrate()
    await db.create_queue("demo", int)
    queue: Queue[int] = await db.queue("demo", int)
    seen = bytearray(messages)
    numbers = iter(range(messages))
    received = 0
    all_seen = asyncio.Event()

    async def call() -> None:
        for number in numbers:
            await queue.enqueue(number)

    async def consume() -> None:
        nonlocal received
        consumer = queue.consumer()
        while True:
            leased = await consumer.lease(5_000)
            for message in leased:
                seen[message.payload] = min(seen[message.payload] + 1, 255)
            await queue.ack(leased)
            received += len(leased)
            if received >= messages:
                all_seen.set()

    began = time.monotonic()
    consumers = [asyncio.ensure_future(consume()) for _ in range(2)]
    await asyncio.gather(*(call() for _ in range(callers)))
    enqueued = time.monotonic() - began
    ended = asyncio.ensure_future(all_seen.wait())
    await asyncio.wait([ended, *consumers], timeout=60, return_when=asyncio.FIRST_COMPLETED)
    took = time.monotonic() - began
    for consumer in [ended, *consumers]:
        consumer.cancel()
    await asyncio.gather(ended, *consumers, return_exceptions=True)
    return {
        "messages": messages,
        "callers": callers,
        "lost": seen.count(0),
        "twice": messages - seen.count(0) - seen.count(1),
        "left": (await queue.stats()).messages,
        "enqueued_per_s": round(messages / enqueued),
        "end_to_end_per_s": round(messages / took),
    }


def main(of: Sequence[str] | None = None) -> None:
    """Runs the demo."""
    parser = argparse.ArgumentParser(prog="python -m trunkline", description=__doc__)
    parser.add_argument("what", choices=["demo"])
    parser.add_argument("--messages", type=int, default=200_000, metavar="N", help="number of messages (200000)")
    parser.add_argument("--callers", type=int, default=1_000, metavar="N", help="number of concurrent tasks; each awaits every message that it sends (1000)")
    parser.add_argument("--json", action="store_true", help="print one line of JSON instead of the report")
    said = parser.parse_args(of)
    cluster = Cluster()
    try:
        told = asyncio.run(_demo(cluster.url, said.messages, said.callers))
    finally:
        cluster.stop()
    if said.json:
        print(json.dumps(told))
    else:
        print(f"{told['callers']:,} tasks sent {told['messages']:,} messages and awaited each of them: {told['enqueued_per_s']:,} per second")
        print(f"leased and acknowledged at the same time: {told['end_to_end_per_s']:,} per second, end to end")
        print(f"lost: {told['lost']:,}; received twice: {told['twice']:,}; left in the queue: {told['left']:,}")
    if told["lost"] or told["twice"] or told["left"]:
        sys.exit(1)
