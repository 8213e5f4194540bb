"""The calls of the SQL functions: a text with a `?` for each value, and the values.

Each value is a text, a number, a truth or none, and each `?` is cast: so a call means the same through every driver, whatever types
the user has taught theirs. Lists travel as array literals, metadata as JSON.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Union

Value = Union[str, int, float, bool, None]
Metadata = Mapping[str, str]
Delay = Union[datetime.timedelta, float]
"""A `timedelta`, or seconds."""


class Delivery(Protocol):
    """What names one delivery of a message: any message that was leased, here or by the library."""

    @property
    def id(self) -> int: ...
    @property
    def attempt(self) -> int: ...


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
class Options:
    """What a message is enqueued with beside its payload: see `trunkline.transaction.SyncQueue.enqueue`."""

    after: Delay | None = None
    at: datetime.datetime | None = None
    priority: int = 0
    within: Delay | None = None
    replaces: bool = False

    def delay(self) -> tuple[str, Value]:
        if self.at is None:
            return "make_interval(secs => cast(? as float8))", seconds(self.after or 0)
        if self.after is not None:
            raise ValueError("a message is due after a delay or at a time: give one of after and at")
        if self.at.tzinfo is None:
            raise ValueError("the time at which a message is due needs a time zone: datetime.now(timezone.utc), for example")
        return "greatest(interval '0', cast(cast(? as text) as timestamptz) - clock_timestamp())", self.at.isoformat()


def enqueue(schema: str, queue: str, payload: str, metadata: Metadata | None, key: str | None, unique: str | None, options: Options) -> Call:
    due, delay = options.delay()
    return Call(
        f"select {schema}.enqueue(cast(? as text), cast(? as text), {due}, cast(cast(? as text) as jsonb), cast(? as int), cast(? as text),"
        " make_interval(secs => cast(? as float8)), cast(? as bool), cast(? as text))",
        (queue, payload, delay, document(metadata), options.priority, unique, lasting(options.within), options.replaces, key),
    )


def enqueue_many(
    schema: str,
    queue: str,
    payloads: Sequence[str],
    metadata: Sequence[Metadata | None] | None,
    keys: Sequence[str] | None,
    unique: Sequence[str | None] | None,
    options: Options,
) -> Call:
    due, delay = options.delay()
    documents = None if metadata is None else array(map(document, metadata))
    return Call(
        f"select * from {schema}.enqueue_many(cast(? as text), cast(cast(? as text) as text[]), {due}, cast(cast(? as text) as jsonb[]),"
        " cast(? as int), cast(cast(? as text) as text[]), make_interval(secs => cast(? as float8)), cast(? as bool),"
        " cast(cast(? as text) as text[]))",
        (
            queue,
            array(payloads),
            delay,
            documents,
            options.priority,
            None if unique is None else array(unique),
            lasting(options.within),
            options.replaces,
            None if keys is None else array(keys),
        ),
    )


def enqueue_unique(schema: str, queue: str, payload: str, unique: str, metadata: Metadata | None, options: Options) -> Call:
    due, delay = options.delay()
    return Call(
        f"select id, outcome from {schema}.enqueue_unique(cast(? as text), cast(? as text), cast(? as text),"
        f" make_interval(secs => cast(? as float8)), cast(? as bool), {due}, cast(cast(? as text) as jsonb), cast(? as int))",
        (queue, payload, unique, lasting(options.within), options.replaces, delay, document(metadata), options.priority),
    )


_DELIVERED = "id, attempt, cast(extract(epoch from enqueued_at) as float8), payload, cast(metadata as text)"


def take(schema: str, queue: str, n: int) -> Call:
    return Call(f"select {_DELIVERED} from {schema}.take(cast(? as text), cast(? as int))", (queue, n))


def lease(schema: str, queue: str, n: int, lease: Delay | None) -> Call:
    return Call(
        f"select {_DELIVERED} from {schema}.lease(cast(? as text), cast(? as int), make_interval(secs => cast(? as float8)))",
        (queue, n, lasting(lease)),
    )


def end(schema: str, verb: str, queue: str, deliveries: Sequence[Delivery], **options: Value) -> Call:
    """What ends leases, or renews them: the deliveries, and what the verb takes besides. Seconds are named `delay` or `lease`."""
    spans = {"delay", "lease"}
    more = "".join(
        f", {name} => " + ("make_interval(secs => cast(? as float8))" if name in spans else "cast(? as text)") for name in options
    )
    ids, attempts = array(str(one.id) for one in deliveries), array(str(one.attempt) for one in deliveries)
    return Call(
        f"select {schema}.{verb}_many(cast(? as text), cast(cast(? as text) as bigint[]), cast(cast(? as text) as int[]){more})",
        (queue, ids, attempts, *options.values()),
    )


def seconds(delay: Delay) -> float:
    return delay.total_seconds() if isinstance(delay, datetime.timedelta) else float(delay)


def lasting(delay: Delay | None) -> float | None:
    return None if delay is None else seconds(delay)


def document(metadata: Metadata | None) -> str | None:
    return None if metadata is None else json.dumps(dict(metadata), ensure_ascii=False)


def array(texts: Iterable[str | None]) -> str:
    """A list as PostgreSQL reads an array."""
    quoted = ("NULL" if text is None else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' for text in texts)
    return "{" + ",".join(quoted) + "}"


def identifier(schema: str) -> str:
    return '"' + schema.replace('"', '""') + '"'
