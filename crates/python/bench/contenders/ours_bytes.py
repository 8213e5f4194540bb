"""Trunkline with payloads that the program encodes itself, stored in `bytea`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import trunkline

from bench.contenders import ours
from bench.message import Message
from bench.place import Place
from bench.tally import Tally


class Contender(ours.Contender):
    settings = f"defaults, bytea with json.dumps; one process of concurrency {ours.CONCURRENCY}, uvloop"
    type = bytes

    async def enqueue(self, message: Message) -> None:
        await self._queue.enqueue(json.dumps(message).encode())

    async def enqueue_many(self, messages: Sequence[Message]) -> None:
        await self._queue.enqueue_many([json.dumps(message).encode() for message in messages])

    def workers(self) -> Sequence[Sequence[str]]:
        return [[sys.executable, "-m", "bench.worker", "trunkline-bytes"]]


async def work(place: Place, tally: Tally) -> None:
    app = trunkline.App(place.postgres)

    @app.task(queue="bench")
    async def handle(payload: bytes) -> None:
        tally.add(json.loads(payload)["n"])

    await app.run(concurrency=ours.CONCURRENCY)
