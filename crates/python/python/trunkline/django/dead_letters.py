"""Lists, replays and discards dead letters on Django's connection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connections

from trunkline.django.place import application
from trunkline.transaction.calls import identifier

PAGE = 50
#: The maximum number up to which dead letters are counted, so that the page costs little however
#: many there are.
MOST = 1000
#: The maximum number of characters of an error and of a payload on the page.
_LONGEST = 500


@dataclass(frozen=True)
class Shown:
    """A dead letter on the admin's page. `payload` is its text in the database, or `None` for a
    null. Long texts are cut."""

    id: int
    dead_at: Any
    attempt: int
    error: str
    payload: str | None


@dataclass(frozen=True)
class Count:
    """The number of a queue's dead letters, at most one more than `MOST`."""

    queue: str
    dead: int

    def __str__(self) -> str:
        return str(self.dead) if self.dead <= MOST else f"more than {MOST:,}"


def counts(alias: str) -> list[Count]:
    """Returns each queue with the number of its dead letters."""
    schema = _schema()
    queues = [queue for (queue,) in _rows(alias, f"select name from {schema}.queue order by name")]
    tables = [f"{schema}.{identifier('dead_' + queue)}" for queue in queues]
    asked = " union all ".join(f"select {n}, pg_catalog.count(*) from (select from {table} limit {MOST + 1}) d" for n, table in enumerate(tables))
    return [Count(queues[n], dead) for n, dead in sorted(_rows(alias, asked))] if asked else []


def page(alias: str, queue: str, after: int) -> list[Shown]:
    """Returns up to `PAGE` dead letters, and one more if there is another page."""
    # The server cuts the texts, because a page of whole payloads may not fit in memory.
    texts = ", ".join(f"pg_catalog.left({text}, {_LONGEST + 1})" for text in ("error", "payload"))
    asked = f"select id, dead_at, attempt, {texts} from {_schema()}.dead_letters(%s, %s, %s)"
    rows = _rows(alias, asked, queue, after, PAGE + 1)
    return [Shown(id, dead_at, attempt, _cut(error), None if payload is None else _cut(payload)) for id, dead_at, attempt, error, payload in rows]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def replay(alias: str, queue: str, ids: Sequence[int]) -> int:
    """Makes dead letters due again now, with all attempts that the queue allows. Returns their
    number; other ids are ignored."""
    return _done(alias, "replay", queue, ids)


def discard(alias: str, queue: str, ids: Sequence[int]) -> int:
    """Deletes dead letters permanently. Returns their number; other ids are ignored."""
    return _done(alias, "discard", queue, ids)


def _done(alias: str, verb: str, queue: str, ids: Sequence[int]) -> int:
    ((count,),) = _rows(alias, f"select {_schema()}.{verb}(%s, cast(%s as bigint[]))", queue, list(ids))
    return int(count)


def _schema() -> str:
    return identifier(application().schema)


def _rows(alias: str, text: str, *values: Any) -> list[tuple[Any, ...]]:
    connection: Any = connections[alias]
    with connection.cursor() as cursor:
        cursor.execute(text, values)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows
