"""Runs PGQueuer for the benchmark. README.md in this folder gives the source of each setting."""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

sys.path.insert(0, str(Path(__file__).parent.parent))
import load_protocol
import peer

ENTRYPOINT = "message"
MANAGERS = 2
BATCH_SIZE = 100


class Contender:
    version = peer.VERSION
    seed_batch = 5_000

    def __init__(self, options: load_protocol.Options) -> None:
        self.options = options
        self.managers = MANAGERS
        self.batch_size = max(BATCH_SIZE, options.batch)
        self.jobs_at_a_time = None
        if options.consumers:
            # The limit is per manager, and PGQueuer refuses a limit below two batches.
            self.managers = 1
            self.batch_size = max(1, min(self.batch_size, options.consumers // 2))
            self.jobs_at_a_time = max(2, options.consumers)

    def settings(self) -> str:
        limit = f", max_concurrent_tasks {self.jobs_at_a_time}" if self.jobs_at_a_time else ""
        return (
            f"one process, {peer.ASYNCPG}, uvloop, {self.managers} managers with a connection each, "
            f"batch_size {self.batch_size}{limit}, producers on a pool of {self.options.producers}, durable, pgq autovac, "
            "LISTEN and a poll every 30 s"
        )

    async def open(self) -> None:
        size = max(1, self.options.producers)
        self.pool = await asyncpg.create_pool(self.options.url, min_size=size, max_size=size)
        self.queries = Queries(AsyncpgPoolDriver(self.pool))
        await self.queries.install()
        await self.queries.optimize_autovacuum()

    async def send(self, message: load_protocol.Message) -> None:
        await peer.send(self.queries, ENTRYPOINT, [message.text().encode()])

    async def send_many(self, messages: list[load_protocol.Message]) -> None:
        await peer.send(self.queries, ENTRYPOINT, [m.text().encode() for m in messages])

    async def consume(self, received: Callable[[int], None], stop: asyncio.Event) -> None:
        managers = [await self.manager(received) for _ in range(self.managers)]

        async def stop_them() -> None:
            await stop.wait()
            for manager in managers:
                manager.shutdown.set()

        async with asyncio.TaskGroup() as group:
            group.create_task(stop_them())
            for manager in managers:
                group.create_task(manager.run(batch_size=self.batch_size, max_concurrent_tasks=self.jobs_at_a_time))

    async def manager(self, received: Callable[[int], None]) -> PgQueuer:
        manager = PgQueuer(AsyncpgDriver(await asyncpg.connect(self.options.url)))

        @manager.entrypoint(ENTRYPOINT)
        async def handle(job: Job) -> None:
            received(json.loads(job.payload)["at"])

        return manager

    async def close(self) -> None:
        await self.pool.close()


if __name__ == "__main__":
    load_protocol.run(Contender, uvloop.new_event_loop)
