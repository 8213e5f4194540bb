"""Decides from a handler's result whether its work is done."""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from ..draft import Drafted
from .backoff import Bury, RetryAfter

#: The types of the results that contain nothing else.
_PLAIN = (type(None), bool, int, float, str, bytes)
#: The modules of iterators that do their work only while a caller reads them, such as ``map``.
_LAZY = ("builtins", "itertools")


class Unfinished(TypeError):
    """A handler returned an object that it should have run, awaited or enqueued."""


def outcomes(result: object) -> Sequence[object]:
    """Returns the result of a batch handler if it is a list. Raises its error, or a ``TypeError``,
    otherwise."""
    if not isinstance(result, (list, tuple)):
        check_returned(result)
        raise TypeError(f"a handler of batches must return None, or a list with None or an error for each message, not a {type(result).__name__}")
    return cast("Sequence[object]", result)


def check_returned(result: object) -> None:
    """Raises an exception that a handler returned instead of raising it, and an error for an object
    that the handler should have run or awaited."""
    if (error := error_in(result)) is not None:
        raise error


def error_in(outcome: object) -> BaseException | None:
    """Returns the error that a handler returned, for its message or for one message of a batch. Any
    other outcome means done.

    The error may be within lists, tuples, sets and dictionaries, as after
    ``asyncio.gather(…, return_exceptions=True)``.
    """
    if isinstance(outcome, type):
        return outcome() if issubclass(outcome, BaseException) else None
    errors = list(_errors(outcome))
    return decisive(errors) if errors else None


def decisive(errors: Sequence[BaseException]) -> BaseException:
    """Returns the error that decides how the message ends. An attempt that may succeed later comes
    before the end of all attempts."""
    failures = [error for error in errors if not isinstance(error, (Bury, RetryAfter))]
    delays = [error for error in errors if isinstance(error, RetryAfter)]
    return (failures or delays or errors)[0]


def _errors(outcome: object) -> Iterator[BaseException]:
    pending: list[Any] = [outcome]
    seen = set[int]()
    while pending:
        one = pending.pop()
        if isinstance(one, _PLAIN):
            continue
        if isinstance(one, BaseException):
            yield one
        elif isinstance(one, (list, tuple, set, frozenset, dict)):
            if id(cast("object", one)) not in seen:
                seen.add(id(cast("object", one)))
                within: Iterable[Any] = cast("dict[Any, Any]", one).values() if isinstance(one, dict) else cast("Iterable[Any]", one)
                pending += reversed(list(within))
        elif isinstance(one, (asyncio.Future, concurrent.futures.Future)):
            try:
                pending.append(_result_of(cast("asyncio.Future[Any]", one)))
            except BaseException as error:
                yield error
        elif (why := _unfinished(one)) is not None:
            yield Unfinished(f"the handler returned {why}")


def _result_of(future: asyncio.Future[Any]) -> Any:
    """Returns the result of a future, or raises its error."""
    if not future.done():
        raise Unfinished("the handler returned a future whose work has not ended: wait for its result in the handler")
    if future.cancelled():
        raise Unfinished("the handler returned a future that was cancelled")
    return future.result()


def _unfinished(one: Any) -> str | None:
    """Describes an object whose work has not ended, and says what to do. Returns ``None`` for any
    other object."""
    if inspect.iscoroutine(one):
        one.close()  # otherwise Python warns that it was never awaited
        return "a coroutine that was not awaited: make it async, or await in it"
    if inspect.isgenerator(one) or inspect.isasyncgen(one):
        return "a generator, whose body has not run: a handler must not yield"
    if isinstance(one, Drafted):
        return "a draft that was not enqueued: call its enqueue()"
    if inspect.isawaitable(one):
        return "an awaitable that was not awaited: make it async, or await in it"
    kind: type[object] = one.__class__
    if issubclass(kind, Iterator) and kind.__module__ in _LAZY:
        return f"a {kind.__name__}, which works only while it is read: make a list of it"
    pool: Any = sys.modules.get("multiprocessing.pool")
    if pool is not None and issubclass(kind, (pool.ApplyResult, pool.IMapIterator)):
        return f"a pool's {kind.__name__}, whose work may not have ended: wait for its result in the handler"
    return None
