"""The contenders. Each module describes what its contender needs;
crates/python/bench/README.md gives the sources of its settings."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Protocol

from bench.message import Message
from bench.place import Place

MODULES = {
    "trunkline": "ours",
    "trunkline-bytes": "ours_bytes",
    "trunkline-core": "core",
    "procrastinate": "procrastinate",
    "pgqueuer": "pgqueuer",
    "awa": "awa",
    "dramatiq-redis": "dramatiq_redis",
    "dramatiq-rabbitmq": "dramatiq_rabbitmq",
    "celery-redis": "celery_redis",
    "celery-rabbitmq": "celery_rabbitmq",
}


class Contender(Protocol):
    """A library's queue, on the server that `needs` names."""

    needs: str
    version: str
    settings: str
    backlog: int
    """The number of messages that keep its workers busy for some seconds."""
    uvloop: bool

    async def open(self, place: Place) -> None:
        """Connects, and creates what the contender needs on the server."""

    async def enqueue(self, message: Message) -> None:
        """Enqueues a message. Returns when the server has the message."""

    async def enqueue_many(self, messages: Sequence[Message]) -> None:
        """Enqueues a batch. If the library has no call for batches, `batches` is false, and this
        method enqueues one message after another."""

    batches: bool

    async def waiting(self) -> int:
        """Returns the server's count of the messages that it holds."""

    async def close(self) -> None: ...

    def workers(self) -> Sequence[Sequence[str]]:
        """Returns the commands of its worker processes. Their handler adds each message to the
        tally."""


def contender(name: str) -> Contender:
    made: Contender = importlib.import_module(f"bench.contenders.{MODULES[name]}").Contender()
    return made


def takes_part(name: str, workload: str) -> bool:
    """Returns true if a contender runs a workload. The core runs `alone` and `tasks`, and only
    `trunkline` runs `hour` and `exceptions`. `batches` needs a call for batches."""
    if name == "trunkline-core":
        return workload in ("alone", "tasks")
    if workload in ("hour", "exceptions"):
        return name == "trunkline"
    return workload != "batches" or contender(name).batches
