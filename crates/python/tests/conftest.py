from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import asyncio

import pytest

from trunkline._trunkline import test_database as new_database

R = TypeVar("R")


@pytest.fixture
def url() -> str:
    """A new database for the test."""
    return new_database()


@pytest.fixture
def run() -> Callable[[Awaitable[Any]], Any]:
    """Returns a function that runs a coroutine in a new event loop, for at most a minute."""

    def within(work: Awaitable[R]) -> R:
        async def limited() -> R:
            return await asyncio.wait_for(work, 60)

        return asyncio.run(limited())

    return within
