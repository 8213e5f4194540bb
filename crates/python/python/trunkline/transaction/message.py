"""A message as the SQL functions return it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, TypeVar

from trunkline import Lease

T = TypeVar("T")


@dataclass(frozen=True)
class Message(Generic[T]):
    """A message that was taken or leased in your transaction. `id` and `attempt` name this delivery
    permanently."""

    id: int
    attempt: int
    enqueued_at: datetime
    payload: T
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def lease(self) -> Lease:
        """The name of this delivery, without the payload. The verbs of `trunkline.Queue` also
        accept it."""
        return Lease(self.id, self.attempt)
