"""Runs awa through its documented calls: heartbeats, and the rescue of jobs with a stale heartbeat."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import awa

sys.path.insert(0, str(Path(__file__).parent.parent))
import history_protocol
import peer
from history_protocol import SLOTS, WORK, Handle, Send, Told

CONNECTIONS = 10
DEADLINE_MS = 300_000  # awa's default


@dataclass
class Message:
    text: str


class Awa:
    def __init__(self, told: Told) -> None:
        self.told = told

    async def open(self) -> awa.AsyncClient:
        return peer.connect(self.told.url, CONNECTIONS)

    async def install(self) -> dict[str, str]:
        client = await self.open()
        await peer.migrate(client)
        await client.close()
        beat = self.told.lease // 3
        settings = (
            f"queue storage, heartbeat_interval_ms {beat}, heartbeat_staleness_ms {self.told.lease}, heartbeat_rescue_interval_ms 1000, "
            f"leader_election_interval_ms 2000, max_attempts {self.told.attempts}, deadline of 5 minutes (default); per process max_workers {SLOTS}; the test notes twice a second which jobs are completed"
        )
        return {"version": peer.VERSION, "settings": settings}

    async def produce(self, run: Callable[[Send], Awaitable[None]]) -> None:
        client = await history_protocol.persist(self.open)

        async def send(texts: list[str]) -> list[int]:
            messages, options = [Message(text) for text in texts], {"queue": WORK, "max_attempts": self.told.attempts}
            if len(messages) == 1:
                return [(await client.insert(messages[0], **options)).id]
            # The ids are found by the payloads, because the order of the returned jobs is not
            # documented.
            ids = {text_of(job.args): job.id for job in await client.insert_many_copy(messages, **options)}
            return [ids[text] for text in texts]

        await run(send)
        await client.close()

    async def consume(self, handle: Handle, stopped: asyncio.Event) -> None:
        client = await history_protocol.persist(self.open)

        @client.task(Message, queue=WORK)
        async def work(job: awa.Job) -> None:
            # RetryAfter would not count the attempt against max_attempts.
            await handle(job.id, job.attempt, job.args.text, since(job.deadline))

        times = {"heartbeat_interval_ms": self.told.lease // 3, "heartbeat_staleness_ms": self.told.lease}
        times |= {"heartbeat_rescue_interval_ms": 1000, "leader_election_interval_ms": 2000}
        await history_protocol.persist(lambda: client.start([(WORK, SLOTS)], **times))
        await stopped.wait()
        await client.shutdown(timeout_ms=8000)
        await client.close()


def text_of(args: object) -> str:
    return args["text"] if isinstance(args, dict) else args.text


def since(deadline: str | None) -> int | None:
    """Returns the time at which the attempt was claimed, computed from its deadline."""
    if deadline is None:
        return None
    return int(datetime.fromisoformat(deadline).timestamp() * 1_000_000) - DEADLINE_MS * 1000


if __name__ == "__main__":
    told = Told()
    asyncio.run(history_protocol.play(Awa(told), told))
