"""A message before it is enqueued: a payload with options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any, Generic, TypeVar

from ._trunkline import Draft as NativeDraft
from .codec import Codec
from .errors import BadPayload
from .times import DAY, MOST_AHEAD, Duration, aware, bounded, seconds, seconds_or_none
from .tracing import with_trace

T = TypeVar("T")
D = TypeVar("D", bound="Drafted[Any]")


@dataclass(frozen=True)
class Options:
    """The options of a message: its due time, and everything else except its payload."""

    after: float | None = None
    at: datetime | None = None
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    key: str | None = None
    priority: int = 0
    unique: str | None = None
    within: float | None = None
    replaces: bool = False
    columns: Mapping[str, str] = field(default_factory=dict[str, str])


def delay(
    after: Duration | None, days: float, hours: float, minutes: float, seconds_: float
) -> float:
    """Returns the sum of all parts of a delay, in seconds."""
    named = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds_).total_seconds()
    return named + (0.0 if after is None else seconds(after))


def native(codec: Codec[T], payload: T, options: Options) -> NativeDraft:
    """Returns the draft in the form that the native module takes. Within a trace, the message
    continues the trace."""
    check(options)
    return NativeDraft(
        codec.encode(payload),
        after=options.after,
        at=options.at,
        metadata=with_trace(options.metadata) or None,
        key=options.key,
        priority=options.priority,
        unique=options.unique,
        within=options.within,
        replaces=options.replaces,
        columns=dict(options.columns) or None,
    )


def check(options: Options) -> None:
    """Refuses options that PostgreSQL cannot store, before anything is sent."""
    if options.after is not None and bounded(options.after) > MOST_AHEAD:
        raise ValueError(f"a delay of {options.after / DAY:,.0f} days is out of bounds: a message is due at most 36,500 days from now")
    if options.at is not None and options.at > datetime.now(timezone.utc) + timedelta(seconds=MOST_AHEAD):
        raise ValueError(f"{options.at} is out of bounds: a message is due at most 36,500 days from now")
    if options.within is not None and not 0 < bounded(options.within) <= MOST_AHEAD:
        raise ValueError(f"a unique key cannot be kept for {options.within:g} s: give more than zero, and at most 36,500 days")
    if not isinstance(options.priority, int):  # pyright: ignore[reportUnnecessaryIsInstance]  # for callers without a type checker
        raise TypeError(f"a priority must be a whole number, not {options.priority!r:.50}")
    if not 0 <= options.priority <= 255:
        raise ValueError(f"priority {int(options.priority)} is out of bounds: from 0, the lowest, to 255")
    for what, text in [("key", options.key), ("unique key", options.unique), *_texts("metadata", options.metadata), *_texts("column", options.columns)]:
        if text is None:
            continue
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # for callers without a type checker
            raise TypeError(f"a {what} must be a str, not {text!r:.50}")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise BadPayload(f"a {what} cannot be encoded as UTF-8: {error}") from None
        if "\0" in text:
            raise BadPayload(f"a {what} contains a zero byte, which text in PostgreSQL cannot contain")


def _texts(what: str, texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, text in texts.items():
        yield f"{what} name", name
        yield f"{what} value for {name!r}", text


@dataclass(frozen=True)
class Drafted(Generic[T]):
    """The common part of the drafts of both interfaces. Every method returns a new draft, so a
    draft can be kept and used again."""

    payload: T
    options: Options

    def _with(self: D, **changed: object) -> D:
        return replace(self, options=replace(self.options, **changed))  # type: ignore[arg-type]

    def after(
        self: D,
        duration: Duration | None = None,
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
    ) -> D:
        """Makes the message due after a delay by the server's clock, at most 36,500 days."""
        return self._with(after=delay(duration, days, hours, minutes, seconds), at=None)

    def at(self: D, time: datetime) -> D:
        """Makes the message due at a time by the server's clock, at most 36,500 days from now, or
        immediately if that time has passed. A time without a zone is local time."""
        return self._with(at=aware(time), after=None)

    def key(self: D, key: str) -> D:
        """Sets the message's key, 1 to 1,024 bytes, in a queue with partitions. Messages with the
        same key are handled in order, one at a time."""
        return self._with(key=key)

    def priority(self: D, priority: int) -> D:
        """Sets the message's priority, in a queue with priorities; 0 is the lowest."""
        return self._with(priority=priority)

    def unique(self: D, key: str, ttl: Duration | None = None, *, replaces: bool = False) -> D:
        """Sets a unique key: no other message of the queue has the same key until this message has
        ended, or for ``ttl`` after its enqueue: more than zero, at most 36,500 days.

        If another message has the key, this message is not enqueued. With ``replaces``, the other
        message then receives this payload, metadata and due time, as long as it is waiting. The
        queue must have ``uniqueness``.
        """
        return self._with(unique=key, within=seconds_or_none(ttl), replaces=replaces)

    def metadata(self: D, metadata: Mapping[str, str]) -> D:
        """Adds names and values to the draft's metadata, which is stored with the payload. All
        metadata of a message has at most 16 KiB."""
        return self._with(metadata={**self.options.metadata, **metadata})

    def columns(self: D, columns: Mapping[str, str]) -> D:
        """Sets values of columns that you added to the queue's table, as texts in the notation of
        PostgreSQL: dates as in ISO, times in UTC. Other columns get their defaults. A message with
        a unique key cannot have such values."""
        return self._with(columns={**self.options.columns, **columns})
