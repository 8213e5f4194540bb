"""Runs each test on every driver that it applies to. Each database has a queue and a table of the
user's."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
import trunkline
from trunkline import transaction

from .doors import AWAITING, BLOCKING, Door


@pytest.fixture
def url(url: str) -> str:
    async def prepare() -> None:
        db = await trunkline.Db.connect(url)
        await db.migrate()
        await db.create_queue("mails", dict, max_attempts=3)

    asyncio.run(prepare())
    with psycopg.connect(url) as connection:
        connection.execute("create table effects (id bigint generated always as identity)")
    return url


@pytest.fixture(params=[*BLOCKING, *AWAITING])
def door(request: pytest.FixtureRequest, url: str) -> Door:
    return Door(request.param, url)


@pytest.fixture
def sql(url: str) -> Iterator[Callable[..., list[Any]]]:
    """Yields a function that runs a query on a separate connection with autocommit. It returns rows
    of one column as values."""
    with psycopg.connect(url, autocommit=True) as connection:

        def ask(text: str, *values: Any) -> list[Any]:
            rows = connection.execute(text, values).fetchall()  # type: ignore[call-overload]
            return [row[0] if len(row) == 1 else row for row in rows]

        yield ask


@dataclass
class Mail:
    to: str


class Awaited:
    """A queue or a draft whose verbs can be awaited on either kind of connection, so that one test
    covers both."""

    def __init__(self, of: Any) -> None:
        self._of = of

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        call = getattr(self._of, verb)
        if verb in ("draft", "after", "at", "key", "priority", "unique", "metadata", "columns"):
            return lambda *args, **kwargs: Awaited(call(*args, **kwargs))

        async def awaited(*args: Any) -> Any:
            answer = call(*(_bare(arg) for arg in args))
            return await answer if inspect.isawaitable(answer) else answer

        return awaited


def _bare(arg: Any) -> Any:
    """Returns an argument without its wrapper, also within a list."""
    if isinstance(arg, Awaited):
        return arg._of  # noqa: SLF001
    return [_bare(one) for one in arg] if isinstance(arg, list) else arg


@pytest.fixture
def queue_on() -> Callable[..., Awaited]:
    return lambda connection, name="mails", type=dict: Awaited(transaction.queue(connection, name, type))
