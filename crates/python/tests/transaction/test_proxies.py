"""Connections inside a proxy, as tracing libraries return them, count as what they are."""

from __future__ import annotations

import asyncio
from typing import Any

from .test_every_driver import ADA


class Proxy:
    """An object that claims the class of the wrapped object, like those of ``wrapt``."""

    def __init__(self, wrapped: Any) -> None:
        object.__setattr__(self, "__wrapped__", wrapped)

    @property
    def __class__(self) -> Any:
        return self.__wrapped__.__class__

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "__wrapped__"), name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self.__wrapped__, name, value)


def test_a_connection_in_a_proxy_counts_as_what_it_is(door, sql, queue_on):
    async def scenario():
        async with door.begin() as connection:
            mails = queue_on(Proxy(connection))
            await mails.enqueue(ADA)
            await mails.enqueue_many([ADA])
            assert len(await mails.take(1)) == 1
        async with door.commits_each() as connection:
            await queue_on(Proxy(connection)).enqueue(ADA)
        assert sql("select due from trunkline.stats('mails')") == [2]

    asyncio.run(scenario())
