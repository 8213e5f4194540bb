"""The numbers of messages that a worker has handled."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass


@dataclass(frozen=True)
class Summary:
    """The numbers of a worker's messages, by how their leases ended."""

    #: Handled and acknowledged.
    done: int = 0
    #: Failed, and will be retried.
    retried: int = 0
    #: Dead letters: after the last attempt, or because the handler or the retry policy decided so.
    dead: int = 0
    #: Handled or failed, but the lease had already been lost.
    lost: int = 0
    #: Released unfinished, without counting an attempt.
    released: int = 0

    def __add__(self, other: Summary) -> Summary:
        return Summary(
            self.done + other.done,
            self.retried + other.retried,
            self.dead + other.dead,
            self.lost + other.lost,
            self.released + other.released,
        )

    @property
    def is_nothing(self) -> bool:
        """True if the worker had no messages."""
        return self == Summary()


async def summary_of(counts: asyncio.Future[dict[str, int]]) -> Summary:
    """Waits for the counts that the native worker reports. A cancellation ends only this wait."""
    return Summary(**await asyncio.shield(counts))
