"""Messages that are read without being dequeued, and the descriptions of queues and schedules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Generic, Literal, TypeVar, get_origin

from .codec import Codec
from .errors import text_of

T = TypeVar("T")
S = TypeVar("S")

State = Literal["due", "delayed", "retrying", "leased", "dead", "archived"]


@dataclass(frozen=True)
class Seen(Generic[T]):
    """A message that was read without being dequeued. If its payload cannot be read, ``payload`` is
    ``None`` and ``problem`` says why."""

    id: int
    enqueued_at: datetime
    attempt: int
    payload: T | None
    metadata: Mapping[str, str]
    priority: int
    key: str | None
    problem: str | None


@dataclass(frozen=True)
class DeadLetter(Seen[T]):
    """A message whose attempts are used up, with the error of the last attempt; or one that was
    buried, with the reason."""

    dead_at: datetime
    error: str


@dataclass(frozen=True)
class Archived(Seen[T]):
    """A message that was acknowledged by ``archive``."""

    archived_at: datetime


@dataclass(frozen=True)
class Peeked(Seen[T]):
    """A message that is waiting or leased; ``due_at`` is when it may next be dequeued."""

    state: State
    due_at: datetime
    error: str | None


@dataclass(frozen=True)
class Found(Seen[T]):
    """A message in any state. ``due_at`` is ``None`` if it is dead or archived; otherwise
    ``ended_at`` is ``None``."""

    state: State
    due_at: datetime | None
    ended_at: datetime | None
    error: str | None


@dataclass(frozen=True)
class Stats:
    """The counts of a queue."""

    due: int
    delayed: int
    leased: int
    to_retry: int
    dead: int
    archived: int
    rows: int
    messages: int
    #: The time for which the oldest due message has been due.
    oldest_due: timedelta | None


@dataclass(frozen=True)
class Description:
    """A queue as the database describes it."""

    name: str
    payload: str
    max_attempts: int
    lease: timedelta
    max_batch: int
    created_at: datetime
    is_paused: bool
    priorities: int
    aging: timedelta
    uniqueness: bool
    partitions: int
    per_key: int


@dataclass(frozen=True)
class Scheduled:
    """A schedule as the database describes it."""

    name: str
    queue: str
    expression: str
    zone: str
    payload: str
    metadata: Mapping[str, str]
    missed: str
    priority: int
    key: str | None
    is_paused: bool
    next: datetime | None
    last: datetime | None
    problem: str | None


def record(kind: type[S], of: Mapping[str, Any]) -> S:
    """Makes a record from its fields."""
    return kind(**{field.name: of[field.name] for field in fields(get_origin(kind) or kind)})  # type: ignore[arg-type]  # every kind is a dataclass


def seen(kind: type[S], codec: Codec[Any], of: dict[str, Any]) -> S:
    """Makes a record with its payload, or with the reason why the payload cannot be read."""
    raw, of["problem"] = of.get("payload"), of.get("problem")
    of["payload"] = None
    if raw is not None:
        try:
            of["payload"] = codec.decode(raw)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # those of codecs in Rust are no `Exception`
            of["problem"] = text_of(error)
    return record(kind, of)
