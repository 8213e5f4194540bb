"""dramatiq with Redis. Its client blocks, so concurrent callers send one after another. Its
actors are plain functions, which are the fastest kind."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import version

from bench.message import Message
from bench.place import Place


class Contender:
    needs = "redis"
    version = f"dramatiq {version('dramatiq')}"
    settings = "hiredis; two processes of 8 threads, prefetch 1000, plain functions; Redis as it comes, without fsync"
    backlog = 15_000
    uvloop = False
    batches = False

    async def open(self, place: Place) -> None:
        from bench.contenders import dramatiq_actor

        self._actor = dramatiq_actor.handle
        self._broker = self._actor.broker

    async def enqueue(self, message: Message) -> None:
        self._actor.send(**message)

    async def enqueue_many(self, messages: Sequence[Message]) -> None:
        for message in messages:
            self._actor.send(**message)

    async def waiting(self) -> int:
        import redis

        from bench.place import here

        with redis.Redis.from_url(here().redis) as client:
            return int(client.llen("dramatiq:bench"))  # type: ignore[arg-type]

    async def close(self) -> None:
        self._broker.close()

    def workers(self) -> Sequence[Sequence[str]]:
        from bench.contenders.dramatiq_actor import PROCESSES, THREADS

        actor = "bench.contenders.dramatiq_actor"
        program = ["env", "dramatiq_queue_prefetch=1000", sys.executable, "-m", "dramatiq"]
        return [[*program, actor, "--processes", str(PROCESSES), "--threads", str(THREADS)]]
