"""A message before it is enqueued: a payload with options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from ._trunkline import Draft as NativeDraft
from .codec import Codec
from .errors import BadPayload
from .times import Duration, aware, bounded, seconds, seconds_or_none
from .tracing import with_trace

T = TypeVar("T")
D = TypeVar("D", bound="Drafted[Any]")


@dataclass(frozen=True)
class Options:
    """When a message is due, and what is beside its payload."""

    after: float | None = None
    at: datetime | None = None
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    key: str | None = None
    priority: int = 0
    unique: str | None = None
    within: float | None = None
    replaces: bool = False


def delay(
    after: Duration | None, days: float, hours: float, minutes: float, seconds_: float
) -> float:
    """A delay of all that is named."""
    named = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds_).total_seconds()
    return named + (0.0 if after is None else seconds(after))


def native(codec: Codec[T], payload: T, options: Options) -> NativeDraft:
    """The draft as it is enqueued. Within a trace, the message continues it."""
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
    )


def check(options: Options) -> None:
    """Refuses texts that PostgreSQL cannot have, before anything is sent."""
    for span in (options.after, options.within):
        if span is not None:
            bounded(span)
    if not 0 <= options.priority <= 255:
        raise ValueError(f"there is no priority {options.priority}: 0 is the lowest")
    for what, text in [("key", options.key), ("unique key", options.unique), *_texts(options.metadata)]:
        if text is None:
            continue
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # for what is not checked
            raise TypeError(f"a {what} is a text, not {text!r:.50}")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise BadPayload(f"a {what} cannot be written as text: {error}") from None
        if "\0" in text:
            raise BadPayload(f"a {what} has a zero byte, which PostgreSQL has in no text")


def _texts(metadata: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, text in metadata.items():
        yield "name of metadata", name
        yield f"text of metadata, {name!r},", text


@dataclass(frozen=True)
class Drafted(Generic[T]):
    """What drafts of both faces share. Every word returns another draft, so one can be kept and used again."""

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
        """It is due after a delay by the server's clock, at most 36,500 days."""
        return self._with(after=delay(duration, days, hours, minutes, seconds), at=None)

    def at(self: D, time: datetime) -> D:
        """It is due at a time by the server's clock; at once where that has passed. Without a zone it is local time."""
        return self._with(at=aware(time), after=None)

    def key(self: D, key: str) -> D:
        """Its key, 1 to 1,024 bytes, in a queue with partitions: messages of one key are handled in order, one at a time."""
        return self._with(key=key)

    def priority(self: D, priority: int) -> D:
        """Its priority, in a queue that has some: from 0, the lowest."""
        return self._with(priority=priority)

    def unique(self: D, key: str, ttl: Duration | None = None, *, replaces: bool = False) -> D:
        """A key that it shares with no other message of the queue, until it has ended, or for ``ttl`` from its enqueue on.

        Where another has the key, it is not enqueued, or, with ``replaces``, that one gets this one's payload, metadata and due
        time while it waits. In a queue with ``uniqueness``.
        """
        return self._with(unique=key, within=seconds_or_none(ttl), replaces=replaces)

    def metadata(self: D, metadata: Mapping[str, str]) -> D:
        """Names and texts beside the payload, at most 16 KiB; added to those that it has."""
        return self._with(metadata={**self.options.metadata, **metadata})
