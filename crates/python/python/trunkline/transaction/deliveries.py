"""The argument of verbs that take one delivery or several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, cast

class Delivery(Protocol):
    """The name of one delivery: a message that was leased here or by the library, or its lease."""

    @property
    def id(self) -> int:
        """The message's id."""
        ...
    @property
    def attempt(self) -> int:
        """The number of the delivery."""
        ...


Deliveries = Delivery | Iterable[Delivery]


def listed(messages: Deliveries) -> Sequence[Delivery]:
    """Returns one or several deliveries as a list."""
    one: Any = messages
    return [one] if hasattr(one, "attempt") else list(cast("Iterable[Delivery]", messages))
