"""Trunkline in one asyncio process. Concurrent calls share rows and commits."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import trunkline

from bench.message import Message
from bench.place import Place
from bench.tally import Tally

CONCURRENCY = 1_000


class Contender:
    needs = "postgres"
    version = f"trunkline {trunkline.__version__}"
    settings = f"defaults, jsonb; one process of concurrency {CONCURRENCY}, uvloop"
    backlog = 200_000
    uvloop = True
    batches = True
    type: object = dict

    async def open(self, place: Place) -> None:
        db = await trunkline.Db.connect(place.postgres)
        await db.migrate()
        await db.create_queue("bench", self.type)
        self._queue = await db.queue("bench", self.type)

    async def enqueue(self, message: Message) -> None:
        await self._queue.enqueue(message)

    async def enqueue_many(self, messages: Sequence[Message]) -> None:
        await self._queue.enqueue_many(messages)

    async def waiting(self) -> int:
        stats = await self._queue.stats()
        return stats.due + stats.leased

    async def close(self) -> None: ...

    def workers(self) -> Sequence[Sequence[str]]:
        return [[sys.executable, "-m", "bench.worker", "trunkline"]]


async def work(place: Place, tally: Tally) -> None:
    app = trunkline.App(place.postgres)

    @app.task(queue="bench")
    async def handle(message: dict[str, Any]) -> None:
        tally.add(message["n"])

    await app.run(concurrency=CONCURRENCY)
