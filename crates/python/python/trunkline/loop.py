"""The bridges between the native module and event loops, one for each loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from ._trunkline import Bridge, Call, Offer

R = TypeVar("R")

#: The bridges by the identity of their loops. Closed loops are removed when a bridge is added.
_bridges: dict[int, tuple[asyncio.AbstractEventLoop, Bridge]] = {}


def bridge() -> Bridge:
    """Returns the bridge of the running loop."""
    loop = asyncio.get_running_loop()
    known = _bridges.get(id(loop))
    if known is not None and known[0] is loop:
        return known[1]
    for key, (other, _) in list(_bridges.items()):
        if other.is_closed():
            _bridges.pop(key, None)
    made = Bridge(loop)
    try:
        loop.add_reader(made.fileno(), made.resolve)
    except NotImplementedError:
        raise RuntimeError(
            "trunkline needs an event loop with add_reader: on Windows, set asyncio.WindowsSelectorEventLoopPolicy"
        ) from None
    _bridges[id(loop)] = (loop, made)
    return made


async def arrival(called: tuple[Awaitable[Offer], Call]) -> Offer:
    """Waits for dequeued messages. If the caller is cancelled at any moment, the messages are
    released."""
    future, call = called
    try:
        return await future
    except BaseException:
        call.leave()
        if isinstance(future, asyncio.Future) and future.done() and not future.cancelled():
            if future.exception() is None:
                future.result().refuse()  # cancelled before the caller read it
        raise
