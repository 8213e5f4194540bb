"""Converts payloads and drafts to the calls that enqueue them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar, cast

from trunkline.draft import Drafted, Options, check
from trunkline.enqueued import Enqueued
from trunkline.tracing import with_trace
from trunkline.transaction import calls
from trunkline.transaction.calls import Call, Written
from trunkline.transaction.payload_text import PayloadText

T = TypeVar("T")

PLAIN = Options()


def written(message: T | Drafted[T], payloads: PayloadText[T]) -> Written:
    """Converts a payload, or a draft with its options. Within a trace, the message continues the
    trace."""
    draft: Drafted[T] = cast("Drafted[T]", message) if isinstance(message, Drafted) else Drafted(message, PLAIN)
    check(draft.options)
    return Written(payloads.write(draft.payload), with_trace(draft.options.metadata) or None, draft.options)


def calls_of(schema: str, queue: str, messages: Iterable[T | Drafted[T]], payloads: PayloadText[T]) -> list[tuple[list[int], Call]]:
    """Returns one call for each combination of options, with the positions of its messages."""
    groups: dict[object, tuple[list[int], list[Written]]] = {}
    for place, message in enumerate(messages):
        one = written(message, payloads)
        places, group = groups.setdefault(one.kind(), ([], []))
        places.append(place)
        group.append(one)
    return [(places, calls.enqueue_many(schema, queue, group)) for places, group in groups.values()]


def outcome(row: Sequence[Any]) -> Enqueued:
    """Returns the outcome in a row of an enqueue. A message without a unique key is new, and its
    row has only the id."""
    id, *named = row
    return Enqueued.of(int(id), *named)


def in_order(places: Sequence[Sequence[int]], outcomes: Sequence[Sequence[Enqueued]]) -> list[Enqueued]:
    """Returns the outcomes of all calls in the order of the messages."""
    found = sorted((place, one) for at, given in zip(places, outcomes) for place, one in zip(at, given))
    return [one for _, one in found]
