"""The calls of the SQL functions: each is a statement with a `?` for each value, and the values.

Each value and each column of an answer travels as a `varchar`. So a call means the same through
every driver, no matter which converters the user has set for numbers, times, JSON and `text`. Lists
travel as array literals, metadata as JSON, bytes as hexadecimal digits regardless of
`bytea_output`. Functions and types are those of `pg_catalog`, regardless of the search path.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timezone

from trunkline.draft import Options
from trunkline.times import whole_number
from trunkline.transaction.deliveries import Delivery

Value = str | int | float | bool | None


@dataclass(frozen=True)
class Call:
    """A statement, and its values in the order of its `?`s."""

    text: str
    values: tuple[Value, ...]
    #: True if the call deletes messages for good unless it runs in a transaction.
    needs_transaction: bool = False

    @property
    def texts(self) -> tuple[str | None, ...]:
        """Returns the values as text."""
        return tuple(None if value is None else _text(value) for value in self.values)

    def written(self, placeholders: Iterable[str]) -> str:
        """Returns the statement with a driver's placeholders."""
        parts = self.text.split("?")
        marks = iter(placeholders)
        return parts[0] + "".join(next(marks) + part for part in parts[1:])


def _text(value: str | float | bool) -> str:
    """Returns a value as PostgreSQL reads it. A member of an enumeration is a plain text or
    number."""
    if isinstance(value, str):
        return "".join((value, ""))
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(int(value) if isinstance(value, int) else float(value))


@dataclass(frozen=True)
class Written:
    """A message: its payload as text, its metadata with the trace, and its other options."""

    payload: str
    metadata: Mapping[str, str] | None
    options: Options

    def kind(self) -> object:
        """Returns the options that all messages of one call must share."""
        of = self.options
        return of.after or 0.0, of.at, of.priority, of.within, of.replaces, document(of.columns)

    def delay(self) -> tuple[str, Value]:
        """Returns the delay, which counts from the call as in the SQL functions. A time becomes a
        delay by the server's clock."""
        if self.options.at is None:
            return _SECONDS, self.options.after or 0.0
        at = self.options.at.astimezone(timezone.utc).isoformat()
        return f"greatest(interval '0', {_value('timestamptz')} operator(pg_catalog.-) pg_catalog.clock_timestamp())", at


def _value(kind: str) -> str:
    """Returns a placeholder for a value of a type."""
    return f"cast(cast(? as pg_catalog.varchar) as pg_catalog.{kind})"


_SECONDS = f"pg_catalog.make_interval(secs => {_value('float8')})"
_TEXT, _TEXTS, _INT, _BOOL = _value("text"), _value("text[]"), _value("int4"), _value("bool")
_JSON, _JSONS = _value("jsonb"), _value("jsonb[]")
_OUTCOME = "cast(id as pg_catalog.varchar), cast(outcome as pg_catalog.varchar)"


def enqueue(schema: str, queue: str, message: Written) -> Call:
    """Makes the call that enqueues one message. It returns a row with the id and, if the message
    has a unique key, the outcome."""
    (due, delay), of = message.delay(), message.options
    if of.unique is not None:
        refuse_beside_unique(of)
        return Call(
            f"select {_OUTCOME} from {schema}.enqueue_unique({_TEXT}, {_TEXT}, {_TEXT}, {_SECONDS}, {_BOOL}, {due}, {_JSON}, {_INT})",
            (queue, message.payload, of.unique, of.within, bool(of.replaces), delay, document(message.metadata), int(of.priority)),
        )
    if of.columns:
        return Call(
            f"select cast({schema}.enqueue_with_columns({_TEXT}, {_TEXT}, {_JSON}, {due}, {_JSON}, {_INT}, {_TEXT}) as pg_catalog.varchar)",
            (queue, message.payload, document(of.columns), delay, document(message.metadata), int(of.priority), of.key),
        )
    return Call(
        f"select cast({schema}.enqueue({_TEXT}, {_TEXT}, {due}, {_JSON}, {_INT}, key => {_TEXT}) as pg_catalog.varchar)",
        (queue, message.payload, delay, document(message.metadata), int(of.priority), of.key),
    )


def enqueue_many(schema: str, queue: str, messages: Sequence[Written]) -> Call:
    """Makes the call that enqueues messages of one kind. It returns rows like those of `enqueue`,
    in order."""
    (due, delay), of = messages[0].delay(), messages[0].options
    payloads, documents = array(one.payload for one in messages), any_of([document(one.metadata) for one in messages])
    unique = any_of([one.options.unique for one in messages])
    if unique is not None:
        for one in messages:
            refuse_beside_unique(one.options)
        return Call(
            f"select {_OUTCOME} from {schema}.enqueue_unique_many({_TEXT}, {_TEXTS}, {_TEXTS}, {_SECONDS}, {_BOOL}, {due}, {_JSONS}, {_INT})",
            (queue, payloads, unique, of.within, bool(of.replaces), delay, documents, int(of.priority)),
        )
    if of.columns:
        return Call(
            f"select cast(id as pg_catalog.varchar) from {schema}.enqueue_many_with_columns({_TEXT}, {_TEXTS}, {_JSON}, {due}, {_JSONS}, {_INT}, {_TEXTS}) id",
            (queue, payloads, document(of.columns), delay, documents, int(of.priority), any_of([one.options.key for one in messages])),
        )
    return Call(
        f"select cast(id as pg_catalog.varchar) from {schema}.enqueue_many({_TEXT}, {_TEXTS}, {due}, {_JSONS}, {_INT}, keys => {_TEXTS}) id",
        (queue, payloads, delay, documents, int(of.priority), any_of([one.options.key for one in messages])),
    )


def refuse_beside_unique(options: Options) -> None:
    """Raises `ValueError` if a message in a call with unique keys has a key or values of columns. A
    queue with unique keys has no keys."""
    if options.columns:
        raise ValueError("a message with a unique key cannot have values of columns")
    if options.key is not None:
        raise ValueError("a message with a unique key cannot have a key: a queue has either keys or uniqueness")


def _delivered(payload: str) -> str:
    """Returns the columns of a delivery. The time is in seconds since 1970, and the payload is the
    expression `payload`."""
    columns = ["id", "attempt", "extract(epoch from enqueued_at)", payload, "metadata"]
    return ", ".join(f"cast({column} as pg_catalog.varchar)" for column in columns)


#: The largest `int4`.
_MOST = 2**31 - 1


def take(schema: str, queue: str, n: int, payload: str) -> Call:
    """Makes the call that takes at most `n` messages, oldest first. Raises `ValueError` unless `n`
    is from 0 to 2,147,483,647."""
    return Call(f"select {_delivered(payload)} from {schema}.take({_TEXT}, {_INT})", (queue, whole_number(n, most=_MOST)), needs_transaction=True)


def lease(schema: str, queue: str, n: int, seconds: float | None, payload: str) -> Call:
    """Makes the call that leases at most `n` messages for `seconds`; `None` means the queue's lease
    time.

    Raises `ValueError` unless `n` is from 0 to 2,147,483,647.
    """
    return Call(f"select {_delivered(payload)} from {schema}.lease({_TEXT}, {_INT}, {_SECONDS})", (queue, whole_number(n, most=_MOST), seconds))


def end(schema: str, verb: str, queue: str, deliveries: Sequence[Delivery], **options: Value) -> Call:
    """Makes the call that ends or renews the leases of deliveries. `options` are the verb's other
    arguments; the names of durations in seconds are `delay` and `lease`."""
    spans = {"delay", "lease"}
    more = "".join(f", {name} => {_SECONDS if name in spans else _TEXT}" for name in options)
    ids, attempts = array(str(one.id) for one in deliveries), array(str(one.attempt) for one in deliveries)
    return Call(
        f"select cast({schema}.{verb}_many({_TEXT}, {_value('int8[]')}, {_value('int4[]')}{more}) as pg_catalog.varchar)",
        (queue, ids, attempts, *options.values()),
    )


def document(metadata: Mapping[str, str] | None) -> str | None:
    """Returns metadata as JSON; `None` stays `None`."""
    return None if metadata is None else json.dumps(dict(metadata), ensure_ascii=False)


def array(texts: Iterable[str | None]) -> str:
    """Returns a list as an array literal of PostgreSQL."""
    quoted = ("NULL" if text is None else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' for text in texts)
    return "{" + ",".join(quoted) + "}"


def any_of(texts: Sequence[str | None]) -> str | None:
    """Returns the list as an array literal, or `None` if all its elements are `None`."""
    return array(texts) if any(text is not None for text in texts) else None


def identifier(schema: str) -> str:
    """Returns a name as a quoted SQL identifier."""
    return '"' + schema.replace('"', '""') + '"'
