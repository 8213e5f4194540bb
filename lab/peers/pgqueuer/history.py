"""Runs PgQueuer through its documented calls.

It uses PgQueuer's supervisor, heartbeats, and retries in the database. Failed jobs stay on hold.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

import asyncpg
import pgqueuer
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.executors import DatabaseRetryEntrypointExecutor
from pgqueuer.models import Job
from pgqueuer.queries import Queries

sys.path.insert(0, str(Path(__file__).parent.parent))
import history_protocol
import peer
from history_protocol import SLOTS, WORK, Handle, Send, Told

BATCH = SLOTS // 2  # max_concurrent_tasks has to be at least two batches
RESTART = timedelta(seconds=1)


class Contender:
    def __init__(self, told: Told) -> None:
        self.told = told
        self.stale = timedelta(milliseconds=told.lease)

    async def install(self) -> dict[str, str]:
        connection = await asyncpg.connect(self.told.url)
        await Queries(AsyncpgDriver(connection)).install()
        await connection.close()
        settings = (
            f"asyncpg, durable, pgqueuer.run with restart_on_failure (restart_delay {RESTART.seconds} s), heartbeat_timeout {self.stale.seconds} s, "
            f"DatabaseRetryEntrypointExecutor with max_attempts {self.told.attempts - 1} (of retries), initial_delay 0.2 s, max_delay 1 s; "
            f'on_failure="hold"; per process batch_size {BATCH}, max_concurrent_tasks {SLOTS}'
        )
        return {"version": f"{peer.VERSION}, {peer.ASYNCPG}", "settings": settings}

    async def produce(self, run: Callable[[Send], Awaitable[None]]) -> None:
        pool = await history_protocol.persist(lambda: asyncpg.create_pool(self.told.url, min_size=1, max_size=2))
        async with pool:
            queries = Queries(AsyncpgPoolDriver(pool))

            async def send(texts: list[str]) -> list[int]:
                return await peer.send(queries, WORK, [text.encode() for text in texts])

            await run(send)

    async def consume(self, handle: Handle, stopped: asyncio.Event) -> None:
        @asynccontextmanager
        async def factory() -> AsyncIterator[PgQueuer]:
            connection = await asyncpg.connect(self.told.url)
            try:
                manager = PgQueuer(AsyncpgDriver(connection))

                @manager.entrypoint(WORK, on_failure="hold", executor_factory=self.executor)
                async def work(job: Job) -> None:
                    # PgQueuer's attempts count failures. A job that is picked again after a stale
                    # heartbeat has the same number.
                    await handle(job.id, job.attempts + 1, (job.payload or b"").decode(), micros(job.updated), is_numbered=False)

                yield manager
            finally:
                await connection.close()

        await pgqueuer.run(
            factory,
            batch_size=BATCH,
            max_concurrent_tasks=SLOTS,
            heartbeat_timeout=self.stale,
            restart_on_failure=True,
            restart_delay=RESTART,
            shutdown=stopped,
        )

    def executor(self, parameters: object) -> DatabaseRetryEntrypointExecutor:
        return DatabaseRetryEntrypointExecutor(
            parameters=parameters,
            max_attempts=self.told.attempts - 1,
            initial_delay=timedelta(milliseconds=200),
            max_delay=timedelta(seconds=1),
        )


def micros(at: datetime) -> int:
    return int(at.timestamp() * 1_000_000)


if __name__ == "__main__":
    told = Told()
    asyncio.run(history_protocol.play(Contender(told), told))
