"""procrastinate with psycopg's pool. Each process has four workers, which fetch at the same time.
Finished jobs are deleted."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import procrastinate
import psycopg

from bench.message import Message
from bench.place import Place
from bench.tally import Tally

POOL, WORKERS, CONCURRENCY = 20, 4, 8


class Contender:
    needs = "postgres"
    version = f"procrastinate {version('procrastinate')}"
    settings = f"a pool of {POOL}; two processes of {WORKERS} workers, concurrency {CONCURRENCY} each, delete_jobs always"
    backlog = 4_000
    uvloop = True
    batches = True

    async def open(self, place: Place) -> None:
        self._url = place.postgres
        self._app, self._task = app(place.postgres)
        await self._app.open_async()
        await self._app.schema_manager.apply_schema_async()

    async def enqueue(self, message: Message) -> None:
        await self._task.defer_async(**message)

    async def enqueue_many(self, messages: Sequence[Message]) -> None:
        await self._task.batch_defer_async(*messages)

    async def waiting(self) -> int:
        async with await psycopg.AsyncConnection.connect(self._url) as connection:
            row = await (await connection.execute("select count(*) from procrastinate_jobs where status = 'todo'")).fetchone()
        return int(row[0]) if row else 0

    async def close(self) -> None:
        await self._app.close_async()

    def workers(self) -> Sequence[Sequence[str]]:
        return [[sys.executable, "-m", "bench.worker", "procrastinate"]] * 2


def app(url: str, tally: Tally | None = None) -> tuple[procrastinate.App, Any]:
    made = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url, min_size=POOL, max_size=POOL))

    @made.task(queue="bench", name="message")
    async def handle(n: int, text: str) -> None:
        if tally is not None:
            tally.add(n)

    return made, handle


async def work(place: Place, tally: Tally) -> None:
    made, _ = app(place.postgres, tally)
    async with made.open_async():
        options: Any = {"queues": ["bench"], "concurrency": CONCURRENCY, "delete_jobs": "always", "install_signal_handlers": False}
        await asyncio.gather(*(made.run_worker_async(**options) for _ in range(WORKERS)))
