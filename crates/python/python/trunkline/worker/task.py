"""A task, which is a function and the queue of its payloads."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Generator, Iterable, MutableSequence, Reversible, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

from .._trunkline import Message
from ..codec import Codec, codec_of
from ..draft import Drafted, Options
from ..enqueued import Enqueued
from ..schedule import Schedule
from ..settings import Setting, checked
from ..times import bounded, checked_count
from .backoff import MOST, Retry, as_native
from .context import Context

if TYPE_CHECKING:
    from .app import App

T = TypeVar("T")

#: The types of the first parameter of a handler of batches.
_LISTS = (list, Collection, Iterable, MutableSequence, Reversible, Sequence)
#: The place where a handler runs: the event loop, a thread, or a separate process.
Place = Literal["loop", "thread", "process"]


@dataclass(frozen=True)
class TaskDraft(Drafted[T]):
    """A message for a task, with options: ``await send.draft(mail).after(minutes=5).enqueue()``."""

    task: Task[T] = field(repr=False, compare=False)

    async def enqueue(self) -> Enqueued:
        """Enqueues the message, and returns its id and outcome."""
        return await self.task.enqueue(self)

    def __await__(self) -> Generator[Any, None, Enqueued]:
        return self.enqueue().__await__()


class Task(Generic[T]):
    """A function that is run for every message of a queue. A direct call runs the function itself;
    ``enqueue`` sends it a payload."""

    def __init__(
        self,
        app: App,
        function: Callable[..., Any],
        *,
        handler: Callable[..., Any],
        queue: str,
        type: Any,
        retry: Retry,
        timeout: float | None,
        batch: int | None,
        place: Place | None,
        lease: float | None,
        weight: int,
        isolates: bool,
        settings: dict[str, Setting],
    ) -> None:
        # If a decorator wraps an async function, the wrapper either returns the function's
        # coroutine or has already run it.
        inner = underlying(function)
        name: str = inner.__qualname__
        is_async = inspect.iscoroutinefunction(inner)
        if any(inspect.isgeneratorfunction(one) or inspect.isasyncgenfunction(one) for one in (function, inner)):
            raise TypeError(f"{name} yields, so calling it runs nothing: a handler must not be a generator")
        as_native(retry)  # raises if it is not a policy
        if is_async and place in ("thread", "process"):
            raise TypeError(f"{name} is async, so it runs in the event loop, not in a {place}")
        if not is_async and place == "loop":
            raise TypeError(f"{name} is not async, so it would block the event loop: run it in a thread")
        if place is not None and place not in get_args(Place):
            raise ValueError(f"a handler's place is 'loop', 'thread' or 'process', not {place!r}")
        if place == "process" and not _has_name(function):
            raise TypeError(f"{name} is bound to values, so another process cannot find it by its name: make it a function of its module")
        if place == "process" and "<locals>" in name:
            raise TypeError(
                f"{name} is within another function, so another process cannot find it: define it in its module, and use "
                "functools.wraps in its decorators"
            )
        if timeout is not None and bounded(timeout) == 0:
            raise ValueError(f"{name} has a timeout of zero: it must be more than zero")
        if lease is not None and not 0 < lease <= MOST:
            raise ValueError(f"a lease of {lease:g} s is out of bounds: more than zero, at most 365 days")
        if batch is not None:
            checked_count("batch", batch)
        checked_count("weight", weight)
        if not isinstance(isolates, bool):  # pyright: ignore[reportUnnecessaryIsInstance]  # for callers without a type checker
            raise TypeError(f"isolate_after_crash is True or False, not {isolates!r:.50}")
        self.app = app
        #: The function that a worker calls.
        self.function = handler
        #: True if the function may return an awaitable.
        self.is_wrapped = is_async and not inspect.iscoroutinefunction(handler)
        self.queue = queue
        self.retry = retry
        self.timeout = timeout
        self.batch = batch
        self.place: Place = place or ("loop" if is_async else "thread")
        self.lease = lease
        self.weight = weight
        #: True if a message whose lease expired runs alone.
        self.isolates = isolates
        self.settings = checked(settings)
        self.schedules: list[tuple[Schedule, Any]] = []
        parameters = _Parameters(function, batch is not None, takes_context=batch is None and place != "process")
        self.takes_payload = parameters.takes_payload
        self.takes_messages = parameters.takes_messages
        #: The name of the parameter that receives the context.
        self.context = parameters.context
        if self.context is not None and place == "process":
            raise TypeError(f"{name} runs in a process, where there is no context")
        self.codec: Codec[T] = codec_of(parameters.type if type is None else type)
        self.__name__ = inner.__name__
        self.__doc__ = inner.__doc__
        self.__module__ = inner.__module__
        self.__wrapped__ = function

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.__wrapped__(*arguments, **named)

    def __repr__(self) -> str:
        return f"Task({self.__name__!r}, queue={self.queue!r})"

    async def enqueue(self, payload: T | Drafted[T]) -> Enqueued:
        """Enqueues a message for the task, and returns its id after the commit. See
        :meth:`Queue.enqueue`."""
        return await (await self.app.queue(self)).enqueue(payload)

    async def enqueue_many(self, payloads: Iterable[T | Drafted[T]]) -> list[Enqueued]:
        """Enqueues all messages in one transaction. See :meth:`Queue.enqueue_many`."""
        return await (await self.app.queue(self)).enqueue_many(payloads)

    def draft(self, payload: T) -> TaskDraft[T]:
        """Returns a message to which options can be added, before ``.enqueue()``."""
        return TaskDraft(payload, Options(), self)


def underlying(function: Callable[..., Any]) -> Any:
    """Returns the function that gives a callable its name and kind: the function inside a
    decorator's wrapper or a partial function, or the ``__call__`` of an object."""
    found: Any = inspect.unwrap(function)
    while not hasattr(found, "__qualname__"):
        found = inspect.unwrap(found.func if isinstance(found, functools.partial) else found.__call__)
    return found


def _has_name(function: Any) -> bool:
    """Returns true if a module contains the function itself under its name."""
    function = inspect.unwrap(function)
    return hasattr(function, "__qualname__") and (not inspect.ismethod(function) or inspect.isclass(function.__self__))


class _Parameters:
    """The parameters of a handler, from its signature."""

    def __init__(self, function: Callable[..., Any], is_of_batches: bool, takes_context: bool) -> None:
        inner = underlying(function)
        hints, name_of = get_type_hints(function if hasattr(function, "__qualname__") else inner), inner.__qualname__
        self.context: str | None = None
        self.type: Any = Any
        self.takes_payload = False
        self.takes_messages = False
        for name, parameter in inspect.signature(function).parameters.items():
            hint = hints.get(name, Any)
            is_optional = Context in get_args(hint) and parameter.default is not inspect.Parameter.empty
            if is_optional and not takes_context:
                continue  # it keeps its default, as in direct calls
            if hint is Context or Context in get_args(hint):
                self.context = name
                if parameter.kind is parameter.POSITIONAL_ONLY:
                    raise TypeError(f"{name_of} has a positional-only context: remove the `/`")
            elif not self.takes_payload:
                if parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD) or self.context is not None:
                    raise TypeError(f"{name_of} must take its payload as its first argument, which {name} cannot be")
                self.takes_payload = True
                self.type = hint
            elif parameter.default is inspect.Parameter.empty:
                raise TypeError(f"{name_of} takes one payload, but {name} is a second; use a dataclass for both")
        if is_of_batches and self.context is not None:
            raise TypeError(f"{name_of} receives batches, so it has no context; let it take a list of Messages")
        if is_of_batches and self.type not in (Any, object):
            if (get_origin(self.type) or self.type) not in _LISTS:
                raise TypeError(f"{name_of} receives batches, so its first parameter is a list of payloads, as in list[str], not {self.type!r:.100}")
            (self.type,) = get_args(self.type) or (Any,)
        if get_origin(self.type) is Message or self.type is Message:
            self.takes_messages = True
            self.type = (get_args(self.type) or (Any,))[0]
