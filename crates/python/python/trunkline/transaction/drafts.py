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
    """Returns one call for each combination of options, with the positions of its messages.
    Messages with keys keep their order. Unique keys are claimed in their order, as one call does,
    so that two transactions cannot wait for each other; of several messages with the same unique
    key, the first comes first."""
    each = [(place, written(message, payloads)) for place, message in enumerate(messages)]
    claims = any(one.options.unique is not None for _, one in each)
    if claims and len({one.kind() for _, one in each}) > 1:
        each.sort(key=lambda at: (at[1].options.unique or "").encode(errors="surrogatepass"))
    adjacent = claims or any(one.options.key is not None for _, one in each)
    groups: list[tuple[list[int], list[Written]]] = []
    of_kind: dict[object, tuple[list[int], list[Written]]] = {}
    last: object = None
    for place, one in each:
        kind = one.kind()
        if kind not in of_kind or (adjacent and kind != last):
            of_kind[kind] = ([], [])
            groups.append(of_kind[kind])
        places, group = of_kind[kind]
        places.append(place)
        group.append(one)
        last = kind
    return [(places, calls.enqueue_many(schema, queue, group)) for places, group in groups]


def outcome(row: Sequence[Any]) -> Enqueued:
    """Returns the outcome in a row of an enqueue. A message without a unique key is new, and its
    row has only the id."""
    id, *named = row
    return Enqueued.of(int(id), *named)


def in_order(places: Sequence[Sequence[int]], outcomes: Sequence[Sequence[Enqueued]]) -> list[Enqueued]:
    """Returns the outcomes of all calls in the order of the messages."""
    found = sorted((place, one) for at, given in zip(places, outcomes) for place, one in zip(at, given))
    return [one for _, one in found]
