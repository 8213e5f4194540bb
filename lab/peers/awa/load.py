"""Runs awa for the benchmark. README.md in this folder gives the source of each setting."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import awa

sys.path.insert(0, str(Path(__file__).parent.parent))
import load_protocol
import peer

QUEUE = "bench"
MAX_WORKERS = 256
SHARDS = 8  # if messages have keys; each key's messages are in one shard
OWN_CONNECTIONS = 20  # of the workers: claims, completions, heartbeat, maintenance, LISTEN


class Contender:
    version = peer.VERSION
    seed_batch = 5_000

    def __init__(self, options: load_protocol.Options) -> None:
        self.options = options
        self.workers = options.consumers or MAX_WORKERS
        self.connections = options.producers + OWN_CONNECTIONS

    def settings(self) -> str:
        keyed = f"enqueue_shards {SHARDS}, ordering_key, " if self.options.keys else ""
        return (
            f"{keyed}one process, queue storage, max_workers {self.workers}, a pool of {self.connections}, "
            "LISTEN and a poll every 200 ms"
        )

    async def open(self) -> None:
        self.client = peer.connect(self.options.url, self.connections)
        await peer.migrate(self.client)
        if self.options.keys:
            # awa has no call to set the number of shards; its ADR contains this statement.
            async with await self.client.transaction() as transaction:
                await transaction.execute(
                    f"insert into awa.queue_meta (queue, enqueue_shards) values ('{QUEUE}', {SHARDS}) "
                    "on conflict (queue) do update set enqueue_shards = excluded.enqueue_shards"
                )

    async def send(self, message: load_protocol.Message) -> None:
        key = f"key {message.key}" if isinstance(message, load_protocol.Keyed) else None
        try:
            await self.client.insert(message, queue=QUEUE, ordering_key=key)
        except awa.UniqueConflict:
            # At a queue's first messages, concurrent callers create the same rows. awa then refuses
            # all callers but one, and inserts nothing for them.
            await self.client.insert(message, queue=QUEUE, ordering_key=key)

    async def send_many(self, messages: list[load_protocol.Message]) -> None:
        await self.client.enqueue_many_copy(messages, queue=QUEUE)

    async def consume(self, received: Callable[..., None], stop: asyncio.Event) -> None:
        @self.client.task(load_protocol.Keyed if self.options.keys else load_protocol.Message, queue=QUEUE)
        async def handle(job: awa.Job) -> None:
            if self.options.keys:
                received(job.args.at, job.args.key, job.args.nr)
            else:
                received(job.args.at)

        await self.client.start([(QUEUE, self.workers)])
        await stop.wait()
        await self.client.shutdown()

    async def close(self) -> None:
        await self.client.close()


if __name__ == "__main__":
    load_protocol.run(Contender)
