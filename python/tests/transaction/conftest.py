"""A database with a queue and a table of the user's, for each test, and each driver that a test is to hold for."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import psycopg
import pytest

from trunkline import transaction

from .doors import AWAITING, BLOCKING, Door


@pytest.fixture
def url(database_url: str) -> str:
    with psycopg.connect(database_url) as connection:
        connection.execute("create table effects (id bigint generated always as identity)")
        connection.execute("select trunkline.create_queue('mails', 'jsonb', max_attempts => 3)")
    return database_url


@pytest.fixture(params=[*BLOCKING, *AWAITING])
def door(request: pytest.FixtureRequest, url: str) -> Door:
    return Door(request.param, url)


@pytest.fixture
def sql(url: str) -> Iterator[Callable[..., list[Any]]]:
    """Asks the database from outside, on a connection that commits at once; rows of one column come as values."""
    with psycopg.connect(url, autocommit=True) as connection:

        def ask(text: str, *values: Any) -> list[Any]:
            rows = connection.execute(text, values).fetchall()  # type: ignore[call-overload]
            return [row[0] if len(row) == 1 else row for row in rows]

        yield ask


class Awaited:
    """A queue whose verbs can be awaited on either kind of connection, so that one test says what holds for both."""

    def __init__(self, queue: transaction.SyncQueue[Any] | transaction.AsyncQueue[Any]) -> None:
        self._queue = queue

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        call = getattr(self._queue, verb)

        @functools.wraps(call)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            answer = call(*args, **kwargs)
            return await answer if inspect.isawaitable(answer) else answer

        return awaited


@pytest.fixture
def queue_on() -> Callable[..., Awaited]:
    return lambda connection, name="mails", payload=dict: Awaited(transaction.queue(connection, name, payload))
