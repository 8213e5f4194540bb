"""Runs procrastinate for the benchmark. README.md in this folder gives the source of each setting."""

import asyncio
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import procrastinate

sys.path.insert(0, str(Path(__file__).parent.parent))
import load_protocol

QUEUE = "bench"
# A worker fetches one job at a time, so fetches are concurrent only if there are several workers.
WORKERS = 4
CONCURRENCY = 32
POLL_SECONDS = 0.05


class Contender:
    version = f"procrastinate {version('procrastinate')}"
    seed_batch = 1_000

    def __init__(self, options: load_protocol.Options) -> None:
        self.options = options
        concurrency = options.consumers or CONCURRENCY
        workers = min(WORKERS, concurrency)
        self.concurrencies = [concurrency // workers + (i < concurrency % workers) for i in range(workers)]
        if options.wait == "poll":
            self.waiting = {"listen_notify": False, "fetch_job_polling_interval": POLL_SECONDS}
        else:
            self.waiting = {"listen_notify": True}
        self.pool_size = max(1, options.producers) + concurrency + 1

    def settings(self) -> str:
        waiting = "LISTEN and a poll every 5 s" if self.waiting["listen_notify"] else f"a poll every {POLL_SECONDS} s"
        return (
            f"one process, psycopg {version('psycopg')} (binary), {len(self.concurrencies)} workers of concurrency "
            f"{max(self.concurrencies)}, a pool of {self.pool_size}, delete_jobs always, {waiting}"
        )

    async def open(self) -> None:
        self.app = procrastinate.App(
            connector=procrastinate.PsycopgConnector(
                conninfo=self.options.url, min_size=self.pool_size, max_size=self.pool_size
            )
        )
        await self.app.open_async()
        await self.app.schema_manager.apply_schema_async()

        @self.app.task(queue=QUEUE, name="message")
        async def handle(at: int, pad: str) -> None:
            self.received(at)

        self.task = handle

    async def send(self, message: load_protocol.Message) -> None:
        await self.task.defer_async(at=message.at, pad=message.pad)

    async def send_many(self, messages: list[load_protocol.Message]) -> None:
        await self.task.batch_defer_async(*({"at": m.at, "pad": m.pad} for m in messages))

    async def consume(self, received: Callable[[int], None], stop: asyncio.Event) -> None:
        self.received = received
        async with asyncio.TaskGroup() as group:
            workers = [group.create_task(self.worker(concurrency)) for concurrency in self.concurrencies]
            await stop.wait()
            for worker in workers:
                worker.cancel()  # this asks the worker to end once its jobs have ended

    async def worker(self, concurrency: int) -> None:
        await self.app.run_worker_async(
            queues=[QUEUE], concurrency=concurrency, delete_jobs="always", install_signal_handlers=False, **self.waiting
        )
        raise RuntimeError("a worker stopped by itself")

    async def close(self) -> None:
        await self.app.close_async()


if __name__ == "__main__":
    load_protocol.run(Contender)
