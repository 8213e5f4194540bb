"""A message as the SQL functions hand it over."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from trunkline.transaction.payload_text import PayloadText

T = TypeVar("T")


@dataclass(frozen=True)
class Message(Generic[T]):
    """A message that was taken or leased in your transaction. `id` and `attempt` name this delivery for ever."""

    id: int
    attempt: int
    enqueued_at: datetime.datetime
    payload: T
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Enqueued:
    """What became of a message with a unique key: its id, or that of the one that has the key."""

    id: int
    outcome: Literal["new", "duplicate", "replaced"]


def messages(rows: Sequence[Sequence[Any]], payloads: PayloadText[T]) -> list[Message[T]]:
    return [
        Message(
            id=id,
            attempt=attempt,
            enqueued_at=datetime.datetime.fromtimestamp(enqueued_at, datetime.timezone.utc),
            payload=payloads.read(payload),
            metadata=json.loads(metadata) if metadata else {},
        )
        for id, attempt, enqueued_at, payload, metadata in rows
    ]
