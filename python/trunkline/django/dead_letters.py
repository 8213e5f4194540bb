"""Dead letters by Django's connection: pages of them, and what is done with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connections

PAGE = 50


@dataclass(frozen=True)
class Shown:
    id: int
    dead_at: Any
    attempt: int
    error: str
    payload: str


@dataclass(frozen=True)
class Count:
    queue: str
    dead: int


def counts(alias: str) -> list[Count]:
    """Each queue with how many dead letters it has."""
    with connections[alias].cursor() as cursor:
        cursor.execute("select q.name, (select s.dead from trunkline.stats(q.name) s) from trunkline.queue q order by q.name")
        return [Count(*row) for row in cursor.fetchall()]


def page(alias: str, queue: str, after: int) -> list[Shown]:
    """Up to `PAGE` and one more, by which one sees whether there is another page."""
    with connections[alias].cursor() as cursor:
        cursor.execute(
            "select id, dead_at, attempt, error, payload from trunkline.dead_letters(%s, %s, %s)", (queue, after, PAGE + 1)
        )
        return [Shown(*row) for row in cursor.fetchall()]


def replay(alias: str, queue: str, ids: Sequence[int]) -> int:
    return _done(alias, "replay", queue, ids)


def discard(alias: str, queue: str, ids: Sequence[int]) -> int:
    return _done(alias, "discard", queue, ids)


def _done(alias: str, verb: str, queue: str, ids: Sequence[int]) -> int:
    with connections[alias].cursor() as cursor:
        cursor.execute(f"select trunkline.{verb}(%s, cast(%s as bigint[]))", (queue, list(ids)))
        count: int = cursor.fetchone()[0]
    return count
