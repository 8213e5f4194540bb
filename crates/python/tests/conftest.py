from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import asyncio

import pytest

from trunkline._trunkline import test_database as new_database

R = TypeVar("R")


@pytest.fixture
def url() -> str:
    """A database of the test's own."""
    return new_database()


@pytest.fixture
def run() -> Callable[[Awaitable[Any]], Any]:
    """Runs a coroutine in an event loop of its own, for a minute at most."""

    def within(work: Awaitable[R]) -> R:
        async def limited() -> R:
            return await asyncio.wait_for(work, 60)

        return asyncio.run(limited())

    return within
