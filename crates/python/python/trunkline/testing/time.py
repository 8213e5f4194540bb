"""Time that passes in an instant."""

from __future__ import annotations

from typing import Any

from .. import sync
from ..loop import bridge
from ..queue import Queue
from ..times import Duration, seconds


async def shift(queue: Queue[Any], by: Duration) -> int:
    """Lets that much time pass for one queue: what is due within it is due now, and a lease that would end within it has run out.
    Consumers and workers that wait are woken. Returns how many messages the queue holds. For queues of :mod:`trunkline.sync`, see
    :func:`shift_sync`."""
    return await queue.native.shift(bridge(), seconds(by))


def shift_sync(queue: sync.Queue[Any], by: Duration) -> int:
    """The same for a queue of :mod:`trunkline.sync`."""
    return queue.native.shift(None, seconds(by))
