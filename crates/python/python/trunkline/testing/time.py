"""Simulates the passing of time."""

from __future__ import annotations

from typing import Any

from .. import sync
from ..loop import bridge
from ..queue import Queue
from ..times import Duration, seconds


async def shift(queue: Queue[Any], by: Duration) -> int:
    """Simulates that the time ``by`` passes for one queue. Messages that would become due within
    this time are due now, and leases that would end within it have expired. Wakes waiting consumers
    and workers. Returns the number of messages in the queue. For queues of :mod:`trunkline.sync`,
    see :func:`shift_sync`."""
    return await queue.native.shift(bridge(), seconds(by))


def shift_sync(queue: sync.Queue[Any], by: Duration) -> int:
    """Does the same as :func:`shift`, for a queue of :mod:`trunkline.sync`."""
    return queue.native.shift(None, seconds(by))
