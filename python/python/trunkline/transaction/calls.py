"""The calls of the SQL functions: a text with a `?` for each value, and the values.

Each value is a text, a number, a truth or none, and each `?` is cast: so a call means the same through every driver, whatever types
the user has taught theirs. Lists travel as array literals, metadata as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trunkline.draft import Options
from trunkline.transaction.deliveries import Delivery

Value = str | int | float | bool | None


@dataclass(frozen=True)
class Call:
    """A statement, and its values in the order of its `?`s."""

    text: str
    values: tuple[Value, ...]

    def written(self, placeholders: Iterable[str]) -> str:
        """The text with a driver's placeholders."""
        parts = self.text.split("?")
        marks = iter(placeholders)
        return parts[0] + "".join(next(marks) + part for part in parts[1:])


@dataclass(frozen=True)
class Written:
    """A message: its payload as text, its metadata with the trace's, and the rest of its options."""

    payload: str
    metadata: Mapping[str, str] | None
    options: Options

    def kind(self) -> object:
        """What the messages of one call have in common."""
        of = self.options
        return of.after, of.at, of.priority, of.within, of.replaces

    def delay(self) -> tuple[str, Value]:
        """Counted from the call, as the functions do. A time becomes a delay by the server's clock."""
        if self.options.at is None:
            return _SECONDS, self.options.after or 0.0
        return f"greatest(interval '0', {_UNTIL})", self.options.at.isoformat()


# Every name says its schema, so that nothing else is called, whatever the session's search_path.
_TEXT = "cast(? as pg_catalog.text)"
_TEXTS = f"cast({_TEXT} as pg_catalog.text[])"
_BOOL = "cast(? as pg_catalog.bool)"
_SECONDS = "pg_catalog.make_interval(secs => cast(? as pg_catalog.float8))"
_UNTIL = f"cast({_TEXT} as pg_catalog.timestamptz) operator(pg_catalog.-) pg_catalog.clock_timestamp()"


def enqueue(schema: str, queue: str, message: Written) -> Call:
    (due, delay), of = message.delay(), message.options
    return Call(
        f"select {schema}.enqueue({_TEXT}, {_TEXT}, {due}, cast({_TEXT} as pg_catalog.jsonb), cast(? as int),"
        f" {_TEXT}, {_SECONDS}, {_BOOL}, {_TEXT})",
        (queue, message.payload, delay, document(message.metadata), of.priority, of.unique, of.within, of.replaces, of.key),
    )


def enqueue_many(schema: str, queue: str, messages: Sequence[Written]) -> Call:
    """Of one kind."""
    (due, delay), of = messages[0].delay(), messages[0].options
    documents = [document(one.metadata) for one in messages]
    unique, keys = [one.options.unique for one in messages], [one.options.key for one in messages]
    return Call(
        f"select * from {schema}.enqueue_many({_TEXT}, {_TEXTS}, {due}, cast({_TEXT} as pg_catalog.jsonb[]), cast(? as int),"
        f" {_TEXTS}, {_SECONDS}, {_BOOL}, {_TEXTS})",
        (
            queue,
            array(one.payload for one in messages),
            delay,
            any_of(documents),
            of.priority,
            any_of(unique),
            of.within,
            of.replaces,
            any_of(keys),
        ),
    )


def enqueue_unique(schema: str, queue: str, message: Written) -> Call:
    (due, delay), of = message.delay(), message.options
    if of.unique is None:
        raise ValueError("the draft has no unique key: give it one with unique(key)")
    return Call(
        f"select id, outcome from {schema}.enqueue_unique({_TEXT}, {_TEXT}, {_TEXT}, {_SECONDS},"
        f" {_BOOL}, {due}, cast({_TEXT} as pg_catalog.jsonb), cast(? as int))",
        (queue, message.payload, of.unique, of.within, of.replaces, delay, document(message.metadata), of.priority),
    )


_DELIVERED = "id, attempt, cast(extract(epoch from enqueued_at) as pg_catalog.float8), payload, cast(metadata as pg_catalog.text)"


def take(schema: str, queue: str, n: int) -> Call:
    return Call(f"select {_DELIVERED} from {schema}.take({_TEXT}, cast(? as int))", (queue, n))


def lease(schema: str, queue: str, n: int, seconds: float | None) -> Call:
    return Call(f"select {_DELIVERED} from {schema}.lease({_TEXT}, cast(? as int), {_SECONDS})", (queue, n, seconds))


def end(schema: str, verb: str, queue: str, deliveries: Sequence[Delivery], **options: Value) -> Call:
    """What ends leases, or renews them: the deliveries, and what the verb takes besides. Seconds are named `delay` or `lease`."""
    spans = {"delay", "lease"}
    more = "".join(f", {name} => {_SECONDS if name in spans else _TEXT}" for name in options)
    ids, attempts = array(str(one.id) for one in deliveries), array(str(one.attempt) for one in deliveries)
    return Call(
        f"select {schema}.{verb}_many({_TEXT}, cast({_TEXT} as bigint[]), cast({_TEXT} as int[]){more})",
        (queue, ids, attempts, *options.values()),
    )


def document(metadata: Mapping[str, str] | None) -> str | None:
    return None if metadata is None else json.dumps(dict(metadata), ensure_ascii=False)


def array(texts: Iterable[str | None]) -> str:
    """A list as PostgreSQL reads an array."""
    quoted = ("NULL" if text is None else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' for text in texts)
    return "{" + ",".join(quoted) + "}"


def any_of(texts: Sequence[str | None]) -> str | None:
    """The list, or none where it says nothing."""
    return array(texts) if any(text is not None for text in texts) else None


def identifier(schema: str) -> str:
    return '"' + schema.replace('"', '""') + '"'
