"""An application, with its database, its tasks and their worker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Literal, Protocol, TypeVar, overload
from weakref import WeakSet

from .. import sync
from .._trunkline import Message, schema_of
from ..db import Db
from ..errors import NoQueue
from ..queue import Queue
from ..schedule import Schedule
from ..settings import Setting
from ..times import Duration, Wait, bounded, checked_count, seconds_or_none, wait_of
from .backoff import Backoff, Retry
from .context import Context, Running
from .life import Life
from .opening import Opened, Opening
from .setup import Setup, UnknownQueue, checked_name
from .summary import Summary
from .task import Place, Task, underlying

T = TypeVar("T")
P = TypeVar("P", contravariant=True)

#: The key of the database among the opened handles: no queue has this name.
_DB = ""


class App:
    """The tasks of one database.

    >>> app = trunkline.App("postgres:///app")
    >>> @app.task(queue="mails", retry=trunkline.Backoff(max_attempts=5), timeout=30)
    ... async def send(mail: Mail): ...
    >>> await send.enqueue(Mail(...))

    ``trunkline-worker module:app`` runs the tasks; in tests, :meth:`drain` does.
    """

    #: The remedy for a missing queue, for error messages.
    _remedy = "`await app.setup()` creates it, and so does `trunkline-worker` when it starts"

    def __init__(self, url: str = "") -> None:
        #: The address of the database. A change takes effect at the next use, for example in a
        #: program's tests.
        self.url = url
        #: The tasks, by the names of their queues.
        self.tasks: dict[str, Task[Any]] = {}
        #: The tasks that declare schedules, by the names of the schedules.
        self._schedules: dict[str, Task[Any]] = {}
        self._opened = Opened()
        # Weak, because each coroutine owns its run: if the coroutine is dropped, the run
        # disappears.
        self._runs: WeakSet[_Run] = WeakSet()

    @overload
    def task(
        self,
        *,
        batch: int,
        queue: str | None = None,
        type: Any = None,
        retry: Retry = ...,
        timeout: Duration | None = None,
        place: Place | None = None,
        lease: Duration | None = None,
        weight: int = 1,
        isolate_after_crash: bool = True,
        **settings: Setting,
    ) -> _BatchDecorator: ...
    @overload
    def task(
        self,
        *,
        queue: str | None = None,
        type: Any = None,
        retry: Retry = ...,
        timeout: Duration | None = None,
        batch: None = None,
        place: Place | None = None,
        lease: Duration | None = None,
        weight: int = 1,
        isolate_after_crash: bool = True,
        **settings: Setting,
    ) -> _Decorator: ...
    def task(
        self,
        *functions: Any,
        queue: str | None = None,
        type: Any = None,
        retry: Retry = Backoff(),
        timeout: Duration | None = None,
        batch: int | None = None,
        place: Place | None = None,
        lease: Duration | None = None,
        weight: int = 1,
        isolate_after_crash: bool = True,
        **settings: Setting,
    ) -> Any:
        """Makes a function the handler of a queue. The queue is named after the function unless
        ``queue`` is given.

        - The function's first parameter is the payload, whose annotation decides how it is stored
          and checked. A parameter annotated with :class:`Context` receives the context. With
          ``batch`` the function receives a list of up to ``batch`` payloads (or ``Message``\\ s),
          and may return a list with an exception, or ``None``, for each of them.
        - ``async`` functions run in the event loop, other functions in threads, or with
          ``place="process"`` in processes.
        - If the function raises an exception, or returns one, its message is retried as ``retry``
          says; :class:`RetryAfter` and :class:`Bury` override ``retry``. A list or another
          collection with an exception, and work that has not ended (a coroutine, a ``map``, a
          future), fail the message, too. Any other result means done. The queue's own ``max_attempts`` (10) also applies, so the message may be a dead
          letter before the ``max_attempts`` of ``retry``: set both.
        - ``timeout`` seconds after its beginning the function has failed. A coroutine is then
          cancelled and a process is killed, but a thread runs until it ends. For a coroutine, the
          time in which another handler blocks the event loop counts, too.
        - ``lease`` is the time for which the worker leases messages, instead of the queue's lease
          time: more than zero, at most 365 days. The worker renews leases while handlers run, so
          the lease time only decides how soon other workers receive the messages of a worker that
          crashed or whose event loop is blocked.
        - ``weight`` is the task's share of ``concurrency``. Each task has one handler to itself. If
          several tasks have messages, a task with weight 2 receives twice as many of the other
          handlers as a task with weight 1.
        - With ``isolate_after_crash`` a message whose lease expired runs alone, because it may have
          killed its process: other messages of the queue wait for up to a second. So after a crash,
          or an outage that is longer than the lease, the messages that were leased are handled one
          after another. Pass ``False`` if no message can end the process, as in most ``async``
          functions.
        - ``settings`` are those of :meth:`Db.create_queue`.
        """
        if functions:
            raise TypeError("a task is declared with parentheses: write @app.task() above the function")

        def decorate(function: Callable[..., Any]) -> Task[Any]:
            name = checked_name("queue", queue or underlying(function).__name__)
            if name in self.tasks:
                raise ValueError(f"queue {name!r} already has a task, {self.tasks[name].__name__}: give this task its own queue")
            made: Task[Any] = Task(
                self,
                function,
                handler=self._handler_of(function),
                queue=name,
                type=type,
                retry=retry,
                timeout=seconds_or_none(timeout),
                batch=batch,
                place=place,
                lease=seconds_or_none(lease),
                weight=weight,
                isolates=isolate_after_crash,
                settings=settings,
            )
            self.tasks[name] = made
            return made

        return decorate

    def _handler_of(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the function that a worker calls. A subclass may wrap the task's function."""
        return function

    def schedule(
        self,
        expression: str,
        payload: Any = None,
        *,
        name: str | None = None,
        zone: str = "UTC",
        missed: Literal["skip", "once", "each"] = "once",
        key: str | None = None,
        priority: int = 0,
    ) -> Callable[[Task[T]], Task[T]]:
        """Enqueues the payload for a task at every tick: see :class:`Schedule`. :meth:`setup`
        stores the schedule. Write this decorator above ``task``.

        The schedule is named after the function, in lower case, unless ``name`` is given. A second
        schedule of a task, or of a function of the same name in another module, needs a
        ``name``."""

        def decorate(task: Task[T]) -> Task[T]:
            if not isinstance(task, Task):  # pyright: ignore[reportUnnecessaryIsInstance]  # without a type checker, the order may be wrong
                raise TypeError(f"a schedule decorates a task: write @app.schedule({expression!r}) above @app.task()")
            said = checked_name("schedule", name or task.__name__.lower())
            if (other := self._schedules.get(said)) is not None:
                raise ValueError(
                    f"a schedule named {said!r} already exists, for task {other.__name__!r} on queue {other.queue!r}, and names are unique "
                    "in the database: give this schedule another name with name="
                )
            self._schedules[said] = task
            declared = Schedule(said, expression, zone, missed, priority=priority, key=key)
            task.codec.encode(payload)  # fail here, and not in the first worker
            task.schedules.append((declared, payload))
            return task

        return decorate

    async def db(self) -> Db:
        """Returns the database. The first use in each process connects."""
        known: tuple[Db, sync.Db] | None = self._opened.known(self.url, _DB)
        return (known or await self._opening_of_db(self.url).arrival())[0]

    def db_sync(self) -> sync.Db:
        """Returns the database for threads, with the verbs of :mod:`trunkline.sync`, on the same
        connections."""
        return self._db_of(self.url)

    async def queue(self, task: Task[T]) -> Queue[T]:
        """Returns the queue of a task. Each process opens it once, even if several callers need it
        at the same time. A failure is not remembered."""
        known: tuple[Queue[T], sync.Queue[T]] | None = self._opened.known(self.url, task.queue)
        return (known or await self._opening_of(task).arrival())[0]

    def queue_sync(self, task: Task[T]) -> sync.Queue[T]:
        """Returns the queue of a task for threads: ``app.queue_sync(send).enqueue(mail)``. This
        method blocks, so do not call it in an event loop."""
        known: tuple[Queue[T], sync.Queue[T]] | None = self._opened.known(self.url, task.queue)
        return (known or self._opening_of(task).result())[1]

    def _db_of(self, url: str) -> sync.Db:
        known: tuple[Db, sync.Db] | None = self._opened.known(url, _DB)
        return (known or self._opening_of_db(url).result())[1]

    def _opening_of_db(self, url: str) -> Opening[tuple[Db, sync.Db]]:
        def open() -> tuple[Db, sync.Db]:
            opened = sync.Db.connect(url)
            return Db(opened.native), opened

        return self._opened.opening(url, _DB, open)

    def _opening_of(self, task: Task[T]) -> Opening[tuple[Queue[T], sync.Queue[T]]]:
        url = self.url

        def open() -> tuple[Queue[T], sync.Queue[T]]:
            try:
                opened: sync.Queue[T] = self._db_of(url).queue(task.queue, task.codec)
            except NoQueue as error:
                raise NoQueue(f"there is no queue {task.queue!r} in the database: {self._remedy}", sqlstate=error.sqlstate) from None
            return Queue(opened.native, opened.codec, opened.schema), opened

        return self._opened.opening(url, task.queue, open)

    @property
    def schema(self) -> str:
        """The name of the schema that contains the queues. Before the first connection, it is the
        schema that the address, its service or the environment names."""
        known: tuple[Db, sync.Db] | None = self._opened.known(self.url, _DB)
        return known[0].schema if known else schema_of(self.url)

    def close(self) -> None:
        """Releases the connections. Connections that nothing else uses are closed. The next use
        connects again."""
        self._opened.forget()

    async def setup(self, *, queues: Iterable[str] | None = None, as_permitted: bool = False, drop_schedules: bool = False) -> None:
        """Migrates the schema, creates the queues of all tasks, or of ``queues``, and stores their
        schedules. Does nothing if everything exists.

        It needs the role that owns the schema. With ``as_permitted``, steps that the role may not
        do are logged and skipped. ``trunkline-worker`` uses this, because its role may have only a
        consumer's rights. Schedules of these queues that no task declares are also logged;
        ``drop_schedules`` drops them."""
        tasks = [self.tasks[name] for name in self._named(queues)]
        await Setup(await self.db(), tasks, set(self._schedules), as_permitted).done(drop_schedules)

    def run(
        self,
        *,
        concurrency: int = 100,
        queues: Iterable[str] | None = None,
        wait: Wait = "adaptive",
        shutdown_after: Duration = 30,
        processes: int | None = None,
        reports: bool = False,
    ) -> Coroutine[Any, Any, Summary]:
        """Runs a worker until the call is cancelled, or until :meth:`stop`. It creates nothing:
        :meth:`setup` does, so await that first. At the end the worker shuts down gracefully: running handlers may finish within ``shutdown_after``; after that their messages
        are released, without counting an attempt. After :meth:`stop` it returns the counts of
        outcomes; a cancelled call raises ``CancelledError`` when the shutdown has ended.
        ``processes`` is the maximum number of running handlers of tasks with ``place="process"``,
        each in its own process; the default is one per processor.

        With ``reports``, the worker writes a row into the table ``trunkline.worker`` for each queue
        every ten seconds. The row contains the number of messages handled and failed, the handlers'
        times, and the number of running handlers. The console and ``trunkline doctor`` show these
        rows. If the database refuses a row, the worker keeps working, and the logger
        ``trunkline.worker.tell`` reports it once.
        """
        _checked(concurrency, processes, shutdown_after)
        wait_of(wait)
        names, run = self._named(queues), _Run(self._runs)

        async def working() -> Summary:
            with run:
                return await run.live(lambda: self._life(concurrency, names, wait, shutdown_after, processes, drains=False, reports=reports))

        return working()

    def stop(self) -> None:
        """Makes :meth:`run` and :meth:`drain` shut down gracefully, even if they have not started
        to work yet. Call it in the thread of their event loop."""
        for run in list(self._runs):
            run.stop()

    @property
    def is_running(self) -> bool:
        """True while :meth:`run` or :meth:`drain` is running."""
        return bool(self._runs)

    def running(self) -> list[Running]:
        """Returns the messages that this process is handling, except those in batches, in no
        particular order. Each has the time since its handler started and its last
        :meth:`Context.progress`. Call it in the thread of the event loop, for example for a page
        that shows what a worker does."""
        return [one for run in self._runs if run.life is not None for one in run.life.running()]

    def drain(
        self,
        *,
        concurrency: int = 100,
        queues: Iterable[str] | None = None,
        shutdown_after: Duration = 30,
        processes: int | None = None,
        reports: bool = False,
    ) -> Coroutine[Any, Any, Summary]:
        """Works until nothing is due and no handler runs, or until :meth:`stop`. Waits for due
        messages that a pause or a limit holds back. Use it in tests, and in programs that are
        started from time to time. The options are those of :meth:`run`, but each queue has its own
        ``concurrency`` handlers, and ``weight`` has no effect."""
        _checked(concurrency, processes, shutdown_after)
        names, run = self._named(queues), _Run(self._runs)

        async def working() -> Summary:
            with run:
                return await run.live(
                    lambda: self._life(concurrency, names, "adaptive", shutdown_after, processes, drains=True, reports=reports)
                )

        return working()

    async def _life(
        self,
        concurrency: int,
        queues: Iterable[str] | None,
        wait: Wait,
        shutdown_after: Duration,
        processes: int | None,
        drains: bool,
        reports: bool,
    ) -> Life:
        tasks = [self.tasks[name] for name in self._named(queues)]
        if not tasks:
            raise UnknownQueue("the application has no task: declare one with App.task")
        opened = [await self.queue(task) for task in tasks]
        return Life(tasks, opened, concurrency, wait, seconds_or_none(shutdown_after) or 0.0, processes, drains, reports)

    def _named(self, queues: Iterable[str] | None) -> list[str]:
        """Returns the names of the tasks' queues, each once; all queues if none is named."""
        names = list(self.tasks) if queues is None else list(dict.fromkeys([queues] if isinstance(queues, str) else queues))
        unknown = [name for name in names if name not in self.tasks]
        if unknown:
            raise UnknownQueue(f"no task has the queue {', '.join(unknown)}; queues with tasks: {', '.join(self.tasks) or 'none'}")
        return names


def _checked(concurrency: int, processes: int | None, shutdown_after: Duration) -> None:
    """Refuses options that no worker supports, before a worker starts."""
    checked_count("concurrency", concurrency)
    if processes is not None:
        checked_count("processes", processes)
    bounded(shutdown_after)


class _Run:
    """A call of :meth:`App.run` or :meth:`App.drain`, which may be stopped before it starts to
    work."""

    def __init__(self, runs: WeakSet[_Run]) -> None:
        self._runs = runs
        self.life: Life | None = None
        self.is_stopped = False
        self._opening: asyncio.Future[Life] | None = None
        runs.add(self)

    def __enter__(self) -> _Run:
        return self

    def __exit__(self, *_: object) -> None:
        self._runs.discard(self)

    async def live(self, made: Callable[[], Coroutine[Any, Any, Life]]) -> Summary:
        if self.is_stopped:
            return Summary()
        self._opening = opening = asyncio.ensure_future(made())
        try:
            self.life = life = await opening
        except asyncio.CancelledError:
            if self.is_stopped:
                return Summary()  # the database has not answered yet
            raise
        finally:
            self._opening = None
        if self.is_stopped:
            life.stop()
        try:
            return await life.live()
        finally:
            self.life = None

    def stop(self) -> None:
        self.is_stopped = True
        if self._opening is not None:
            self._opening.cancel()
        if self.life is not None:
            self.life.stop()


class _WithContext(Protocol[P]):
    """A function of a payload that receives its context by name."""

    def __call__(self, payload: P, /, *, context: Context) -> Any:
        """Handles a payload."""
        ...


class _OfMessageAndContext(Protocol[P]):
    """A function of a message that receives its context by name."""

    def __call__(self, message: Message[P], /, *, context: Context) -> Any:
        """Handles a message."""
        ...


class _OfContext(Protocol):
    """A function without a payload that receives its context by name."""

    def __call__(self, *, context: Context) -> Any:
        """Handles a message without a payload."""
        ...


class _Decorator:
    """The type of ``task``'s result, for type checkers: it accepts functions of a payload or of a
    message, with or without a context, and functions without parameters."""

    # A context is not a payload, and neither is a message, but the type system cannot express this.
    @overload
    def __call__(self, function: Callable[[Context], Any], /) -> Task[None]: ...  # pyright: ignore[reportOverlappingOverload]
    @overload
    def __call__(self, function: Callable[[Message[T]], Any], /) -> Task[T]: ...  # pyright: ignore[reportOverlappingOverload]
    @overload
    def __call__(self, function: Callable[[Message[T], Context], Any], /) -> Task[T]: ...  # pyright: ignore[reportOverlappingOverload]
    @overload
    def __call__(self, function: _OfMessageAndContext[T], /) -> Task[T]: ...
    @overload
    def __call__(self, function: Callable[[T], Any], /) -> Task[T]: ...
    @overload
    def __call__(self, function: Callable[[T, Context], Any], /) -> Task[T]: ...
    @overload
    def __call__(self, function: _WithContext[T], /) -> Task[T]: ...
    @overload
    def __call__(self, function: _OfContext, /) -> Task[None]: ...
    @overload
    def __call__(self, function: Callable[[], Any], /) -> Task[None]: ...
    def __call__(self, function: Callable[..., Any], /) -> Task[Any]:
        raise NotImplementedError


class _BatchDecorator:
    """The type of ``task``'s result with ``batch``, for type checkers: it accepts functions of a
    list of payloads or of messages."""

    @overload
    def __call__(self, function: Callable[[list[Message[T]]], Any], /) -> Task[T]: ...  # pyright: ignore[reportOverlappingOverload]
    @overload
    def __call__(self, function: Callable[[list[T]], Any], /) -> Task[T]: ...
    def __call__(self, function: Callable[..., Any], /) -> Task[Any]:
        raise NotImplementedError
