"""Celery with Redis. Its client blocks, so concurrent callers send one after another. Its
tasks are plain functions, the only kind that Celery has."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import version

from bench.message import Message
from bench.place import Place


class Contender:
    needs = "redis"
    version = f"celery {version('celery')}"
    settings = "hiredis; prefork of two, prefetch 128, acks late, results ignored, no events; Redis as it comes, without fsync"
    backlog = 8_000
    uvloop = False
    batches = False

    async def open(self, place: Place) -> None:
        from bench.contenders import celery_app

        self._app, self._task = celery_app.app, celery_app.handle
        with self._app.connection_for_write() as connection:
            self._app.amqp.queues["bench"].bind(connection.default_channel).declare()

    async def enqueue(self, message: Message) -> None:
        self._task.apply_async(kwargs=message)

    async def enqueue_many(self, messages: Sequence[Message]) -> None:
        for message in messages:
            self._task.apply_async(kwargs=message)

    async def waiting(self) -> int:
        with self._app.connection_for_read() as connection:
            count: int = self._app.amqp.queues["bench"].bind(connection.default_channel).queue_declare(passive=True).message_count
        return count

    async def close(self) -> None:
        self._app.close()

    def workers(self) -> Sequence[Sequence[str]]:
        from bench.contenders.celery_app import PROCESSES

        lean = ["--without-gossip", "--without-mingle", "--without-heartbeat", "-l", "WARNING"]
        return [[sys.executable, "-m", "celery", "-A", "bench.contenders.celery_app", "worker", "-c", str(PROCESSES), *lean]]
