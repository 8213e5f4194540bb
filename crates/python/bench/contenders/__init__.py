"""Who is measured. What each needs stands in its module; where its settings come from, in crates/python/bench/README.md."""

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
    """One queue, on the server that `needs` names."""

    needs: str
    version: str
    settings: str
    backlog: int
    """How many messages keep its workers busy for some seconds."""
    uvloop: bool

    async def open(self, place: Place) -> None:
        """Connects, and makes what the server needs to have."""

    async def enqueue(self, message: Message) -> None:
        """Returns when the server has the message."""

    async def enqueue_many(self, messages: Sequence[Message]) -> None:
        """The same for a batch. Where there is no such call, `batches` is false and this enqueues one after another."""

    batches: bool

    async def waiting(self) -> int:
        """How many messages the server holds: asked of the server, not of the library."""

    async def close(self) -> None: ...

    def workers(self) -> Sequence[Sequence[str]]:
        """The commands of its worker processes, whose handler adds each message to the tally."""


def contender(name: str) -> Contender:
    made: Contender = importlib.import_module(f"bench.contenders.{MODULES[name]}").Contender()
    return made


def takes_part(name: str, workload: str) -> bool:
    """Whether a contender can do a workload: the core has two, batches need a call for them, memory is a question to ours alone."""
    if name == "trunkline-core":
        return workload in ("alone", "tasks")
    if workload in ("hour", "exceptions"):
        return name == "trunkline"
    return workload != "batches" or contender(name).batches
