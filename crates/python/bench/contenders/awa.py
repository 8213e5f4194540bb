"""awa, a Rust core with its own connection pool. Batches are enqueued by COPY into its queue
storage."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

import psycopg
from awa import AsyncClient, Job

from bench.message import Message
from bench.place import Place
from bench.tally import Tally

POOL, WORKERS = 20, 256


@dataclass
class Numbered:
    n: int
    text: str


class Contender:
    needs = "postgres"
    version = f"awa-pg {version('awa-pg')}"
    settings = f"a pool of {POOL}; one process, {WORKERS} workers, 2 claimers, queue storage; many by enqueue_many_copy"
    backlog = 30_000
    uvloop = True
    batches = True

    async def open(self, place: Place) -> None:
        self._url = place.postgres
        self._client = AsyncClient(_address(place), max_connections=POOL)
        await self._client.migrate()
        await self._client.install_queue_storage()

    async def enqueue(self, message: Message) -> None:
        await self._client.insert(Numbered(**message), queue="bench")

    async def enqueue_many(self, messages: Sequence[Message]) -> None:
        await self._client.enqueue_many_copy([Numbered(**message) for message in messages], queue="bench")

    async def waiting(self) -> int:
        async with await psycopg.AsyncConnection.connect(self._url) as connection:
            row = await (await connection.execute("select count(*) from awa.jobs where state = 'available'")).fetchone()
        return int(row[0]) if row else 0

    async def close(self) -> None:
        await self._client.close()

    def workers(self) -> Sequence[Sequence[str]]:
        return [[sys.executable, "-m", "bench.worker", "awa"]]


def _address(place: Place) -> str:
    """Returns the address with a host, because the driver requires a host. The driver nevertheless
    connects through the socket's folder, which follows in the query."""
    return place.postgres.replace("@/", "@localhost/")


async def work(place: Place, tally: Tally) -> None:
    client = AsyncClient(_address(place), max_connections=POOL)

    @client.task(Numbered, queue="bench")
    async def handle(job: Job[Numbered]) -> None:
        tally.add(job.args.n)

    await client.start([{"name": "bench", "max_workers": WORKERS, "claimers": 2}])
    await asyncio.Event().wait()
