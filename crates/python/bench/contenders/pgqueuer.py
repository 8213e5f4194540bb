"""PGQueuer with asyncpg and uvloop. Each process has two managers, which dequeue a hundred
messages at a time."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from importlib.metadata import version

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from bench.message import Message
from bench.place import Place
from bench.tally import Tally

POOL, MANAGERS, BATCH = 20, 2, 100


class Contender:
    needs = "postgres"
    version = f"PGQueuer {version('pgqueuer')}"
    settings = f"a pool of {POOL}; two processes of {MANAGERS} managers, batch_size {BATCH}, uvloop, durable, its autovacuum settings"
    backlog = 30_000
    uvloop = True
    batches = True

    async def open(self, place: Place) -> None:
        self._pool = await asyncpg.create_pool(place.postgres, min_size=POOL, max_size=POOL)
        self._queries = Queries(AsyncpgPoolDriver(self._pool))
        await self._queries.install()
        await self._queries.optimize_autovacuum()

    async def enqueue(self, message: Message) -> None:
        await self._queries.enqueue("message", json.dumps(message).encode())

    async def enqueue_many(self, messages: Sequence[Message]) -> None:
        count = len(messages)
        await self._queries.enqueue(["message"] * count, [json.dumps(message).encode() for message in messages], [0] * count)

    async def waiting(self) -> int:
        count: int = await self._pool.fetchval("select count(*) from pgqueuer")
        return count

    async def close(self) -> None:
        await self._pool.close()

    def workers(self) -> Sequence[Sequence[str]]:
        return [[sys.executable, "-m", "bench.worker", "pgqueuer"]] * 2


async def work(place: Place, tally: Tally) -> None:
    async def manager() -> PgQueuer:
        made = PgQueuer(AsyncpgDriver(await asyncpg.connect(place.postgres)))

        @made.entrypoint("message")
        async def handle(job: Job) -> None:
            tally.add(json.loads(job.payload or b"")["n"])

        return made

    await asyncio.gather(*[(await manager()).run(batch_size=BATCH) for _ in range(MANAGERS)])
