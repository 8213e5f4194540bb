"""The life of a worker in one event loop: calls come in, handlers run, answers go back many at a time."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from .. import logs
from .._trunkline import Delivery, Station
from ..loop import bridge
from ..queue import Queue, Wait
from ..tracing import handling, is_installed, is_recorded
from .backoff import Said, as_native, reason_of, verdict
from .context import Context, Running, enter
from .processes import Processes
from .task import Task

_logger = logging.getLogger("trunkline.worker")


@dataclass(frozen=True)
class Summary:
    """How the leases of a worker's messages ended."""

    #: Handled and acknowledged.
    done: int = 0
    #: Failed, and to be tried again.
    retried: int = 0
    #: Dead at once, because the handler or the retry policy said so.
    dead: int = 0
    #: Handled or failed, but the lease was lost by then.
    lost: int = 0
    #: Given back unfinished, and not charged.
    released: int = 0

    def __add__(self, other: Summary) -> Summary:
        return Summary(
            self.done + other.done,
            self.retried + other.retried,
            self.dead + other.dead,
            self.lost + other.lost,
            self.released + other.released,
        )

    @property
    def is_nothing(self) -> bool:
        """Whether there was nothing to do."""
        return self == Summary()


class Life:
    """A worker of some tasks."""

    def __init__(
        self,
        tasks: Sequence[Task[Any]],
        queues: Sequence[Queue[Any]],
        concurrency: int,
        wait: Wait,
        shutdown_after: float,
        processes: int | None,
        drains: bool,
        reports: bool,
    ) -> None:
        self.tasks = tasks
        options = [
            {
                "queue": queue.native,
                "weight": task.weight,
                "batch": task.batch,
                "timeout": task.timeout,
                "lease": task.lease,
                "shutdown_after": shutdown_after,
                "retry": as_native(task.retry),
            }
            for task, queue in zip(tasks, queues)
        ]
        logs.begin()
        self._station = Station(options, concurrency, wait, drains, reports)
        self._loop = asyncio.get_running_loop()
        self._running: dict[int, tuple[asyncio.Task[None], Context | None]] = {}
        self._answers: list[tuple[Delivery, Said | list[Said]]] = []
        self._threads: Executor | None = None
        self._processes: Processes | None = None
        if any(task.place == "thread" for task in tasks):
            self._threads = ThreadPoolExecutor(concurrency, "trunkline-handler")
        if any(task.place == "process" for task in tasks):
            self._processes = Processes(processes)
        self._starts: list[Callable[[Delivery], None]] = [self._start_of(task) for task in tasks]

    async def live(self) -> Summary:
        """Works until the caller is cancelled, then ends in order."""
        self._loop.add_reader(self._station.fileno(), self._news)
        run = asyncio.ensure_future(self._ended())
        try:
            return await asyncio.shield(run)
        except asyncio.CancelledError:
            self._station.stop()
            await _wait_for(run)
            raise
        finally:
            self._loop.remove_reader(self._station.fileno())
            if self._threads is not None:
                self._threads.shutdown(wait=False, cancel_futures=True)
            if self._processes is not None:
                self._processes.close()

    def stop(self) -> None:
        """Begins the orderly end."""
        self._station.stop()

    def running(self) -> list[Running]:
        """The messages that are handled at present, but for those in batches."""
        return [context.running() for _, context in self._running.values() if context is not None]

    async def _ended(self) -> Summary:
        return Summary(**await self._station.run(bridge()))

    def _news(self) -> None:
        for one in self._station.news():
            if isinstance(one, Delivery):
                self._starts[one.task](one)
                continue
            what, nr = one
            running, context = self._running.get(nr, (None, None))
            if context is not None:
                context.cancel()
            if what == "over" and running is not None:
                running.cancel()

    def _start_of(self, task: Task[Any]) -> Callable[[Delivery], None]:
        create_task, handle, running = self._loop.create_task, self._handler(task), self._running

        def start(delivery: Delivery) -> None:
            context = Context(delivery, task.queue, self._loop) if task.batch is None else None
            running[delivery.nr] = (create_task(handle(delivery, context)), context)

        return start

    def _handler(self, task: Task[Any]) -> Callable[[Delivery, Any], Any]:
        if task.batch is not None:
            return self._batches(task)
        decode, call, is_traced, takes_messages = task.codec.decode, self._call(task), is_recorded(), task.takes_messages

        async def handle(delivery: Delivery, context: Context) -> None:
            said: Said = None
            try:
                payload = decode(delivery.payload)
            except Exception as error:
                said = ("retry", 0.0, f"the payload cannot be read: {reason_of(error)}")
                _logger.warning("message %d of %s cannot be read: %s", context.id, task.queue, error)
                self._answer(delivery, said)
                return
            try:
                enter(context)
                if takes_messages:
                    payload = delivery.message(payload)
                if is_traced or is_installed and delivery.has_metadata:
                    with handling(task.queue, delivery.metadata, context.id, context.attempt):
                        await call(payload, context)
                else:
                    await call(payload, context)
            except Exception as error:
                said = verdict(task.retry, delivery.charged, error)
                self._told(task, context, error, said)
            except asyncio.CancelledError:
                said = ("retry", 0.0, "the handler was cancelled")
            finally:
                self._answer(delivery, said)

        return handle

    def _batches(self, task: Task[Any]) -> Callable[[Delivery, Any], Any]:
        decode, call, takes_messages = task.codec.decode, self._call(task), task.takes_messages

        async def handle(delivery: Delivery, _: object) -> None:
            messages = delivery.messages()
            said: list[Said] = [None] * len(messages)
            payloads: list[Any] = []
            places: list[int] = []
            for place, message in enumerate(messages):
                try:
                    payload = decode(message.payload)
                except Exception as error:
                    said[place] = ("retry", 0.0, f"the payload cannot be read: {reason_of(error)}")
                    continue
                payloads.append(message.with_payload(payload) if takes_messages else payload)
                places.append(place)
            try:
                outcomes: list[object] | None = (await call(payloads, None)) if payloads else None
                if outcomes is not None and len(outcomes) != len(payloads):
                    raise TypeError(f"the handler answered {len(outcomes)} times for {len(payloads)} messages")
                for place, outcome in zip(places, outcomes or ()):
                    if isinstance(outcome, Exception):
                        said[place] = verdict(task.retry, messages[place].charged, outcome)
            except Exception as error:
                _logger.warning("%d messages of %s failed: %s", len(places), task.queue, error, exc_info=error)
                for place in places:
                    said[place] = verdict(task.retry, messages[place].charged, error)
            except asyncio.CancelledError:
                for place in places:
                    said[place] = ("retry", 0.0, "the handler was cancelled")
            finally:
                self._answer(delivery, said)

        return handle

    def _call(self, task: Task[Any]) -> Callable[[Any, Any], Awaitable[Any]]:
        """Calls the function where it runs."""
        function, name, takes_payload = task.function, task.context, task.takes_payload
        if task.place == "process":
            assert self._processes is not None
            return self._processes.call(task)
        if task.place == "loop" and name is None and takes_payload:
            return lambda payload, _: function(payload)

        def call(payload: Any, context: Any) -> Any:
            arguments = (payload,) if takes_payload else ()
            return function(*arguments) if name is None else function(*arguments, **{name: context})

        if task.place == "loop":
            return call
        loop, threads = self._loop, self._threads

        async def in_thread(payload: Any, context: Any) -> Any:
            within = contextvars.copy_context()
            return await loop.run_in_executor(threads, lambda: within.run(call, payload, context))

        return in_thread

    def _told(self, task: Task[Any], context: Context, error: Exception, said: tuple[str, float, str]) -> None:
        about = {"queue": task.queue, "id": context.id, "attempt": context.attempt, "verdict": said[0]}
        _logger.warning("message %d of %s failed: %s", context.id, task.queue, said[2], exc_info=error, extra=about)

    def _answer(self, delivery: Delivery, said: Said | list[Said]) -> None:
        self._running.pop(delivery.nr, None)
        if not self._answers:
            self._loop.call_soon(self._settle)
        self._answers.append((delivery, said))

    def _settle(self) -> None:
        answers, self._answers = self._answers, []
        self._station.settle(answers)


async def _wait_for(run: asyncio.Future[Summary]) -> None:
    """Until it has ended, whatever else is cancelled meanwhile; cancelled again, not any longer."""
    await asyncio.wait([run])
    if not run.cancelled() and run.exception() is not None:
        raise run.exception()  # type: ignore[misc]  # it is one
