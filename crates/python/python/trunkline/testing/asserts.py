"""Assertions about the messages of a queue."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any, TypeVar

from ..queue import Queue
from ..seen import Peeked
from ..worker import Task

T = TypeVar("T")

#: The maximum number of messages that a failure lists.
_LISTED = 20


async def enqueued(queue: Queue[T] | Task[T]) -> list[Peeked[T]]:
    """Returns all waiting and leased messages of a queue, or of a task's queue, sorted by id.
    Changes nothing."""
    opened: Queue[T] = await queue.app.queue(queue) if isinstance(queue, Task) else queue
    messages = {message.id: message for message in await opened.peek(2**31)}
    return [messages[id] for id in sorted(messages)]


async def assert_enqueued(queue: Queue[T] | Task[T], expected: T | Callable[[Peeked[T]], bool]) -> Peeked[T]:
    """Asserts that a queue contains a message with the given payload, or a message for which the
    given function returns true. Returns the first such message."""
    messages = await enqueued(queue)
    for message in messages:
        if _is(message, expected):
            return message
    raise AssertionError(f"{queue!r} has no message as expected; {_listed(messages)}")


async def assert_not_enqueued(queue: Queue[T] | Task[T], unexpected: T | Callable[[Peeked[T]], bool]) -> None:
    """Asserts that a queue contains no message with the given payload, and no message for which the
    given function returns true."""
    held = await enqueued(queue)
    if unreadable := [message for message in held if message.problem is not None and not callable(unexpected)]:
        raise AssertionError(f"{queue!r} holds messages that cannot be read, so they may be unexpected; of these {_listed(unreadable)}")
    messages = [message for message in held if _is(message, unexpected)]
    if messages:
        raise AssertionError(f"{queue!r} holds unexpected messages; of these {_listed(messages)}")


def _is(message: Peeked[Any], expected: Any) -> bool:
    if callable(expected):
        return bool(expected(message))
    return message.problem is None and bool(message.payload == expected)


def _listed(messages: list[Peeked[Any]]) -> str:
    now = datetime.now(timezone.utc)
    lines = ["it holds none" if not messages else f"it holds {len(messages)}:"]
    for message in messages[:_LISTED]:
        later = (message.due_at - now).total_seconds()
        due = "due" if later <= 0 else f"due in {later:.1f} s"
        shown = message.payload if message.problem is None else f"<{message.problem}>"
        lines.append(f"  {message.id}, {due}, attempt {message.attempt}: {shown!r} {dict(message.metadata) or ''}".rstrip())
    if len(messages) > _LISTED:
        lines.append(f"  … and {len(messages) - _LISTED} more")
    return "\n".join(lines)
