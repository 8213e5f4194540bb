"""One message or several, where either may be given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from trunkline.transaction.calls import Delivery


def listed(messages: Delivery | Iterable[Delivery]) -> Sequence[Delivery]:
    if hasattr(messages, "attempt") and hasattr(messages, "id"):
        return [messages]
    return list(cast("Iterable[Delivery]", messages))
