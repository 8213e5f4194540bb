"""Decodes messages from rows, and separates the messages whose payload cannot be read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Generic, TypeVar

from trunkline import Lease
from trunkline.errors import BadPayload, text_of
from trunkline.transaction.message import Message
from trunkline.transaction.payload_text import PayloadText

T = TypeVar("T")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Delivered(Generic[T]):
    """Messages with decoded payloads, and the leases of unreadable ones with the reason."""

    messages: list[Message[T]]
    unreadable: list[tuple[Lease, str]]

    def all(self) -> list[Message[T]]:
        """Returns the messages. Raises an error for the first unreadable message; the caller then
        rolls the `take` back."""
        for lease, why in self.unreadable:
            raise BadPayload(
                f"the payload of message {lease.id} cannot be read: {why}; roll back, and then "
                f"charge Lease({lease.id}, {lease.attempt}) or cancel the message; otherwise it is taken first again"
            )
        return self.messages


def delivered(rows: Sequence[Sequence[Any]], payloads: PayloadText[T]) -> Delivered[T]:
    """Decodes the rows of a call. Messages whose payload cannot be read go to `unreadable`."""
    read: Delivered[T] = Delivered([], [])
    for id_text, attempt_text, seconds, text, metadata in rows:
        id, attempt = int(id_text), int(attempt_text)
        try:
            payload = payloads.read(text)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # those of codecs in Rust are no `Exception`
            read.unreadable.append((Lease(id, attempt), text_of(error)))
            continue
        at = _EPOCH + timedelta(microseconds=int(Decimal(seconds).scaleb(6)))
        read.messages.append(Message(id, attempt, at, payload, json.loads(metadata) if metadata else {}))
    return read
