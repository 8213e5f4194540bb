"""Runs a worker in one event loop: receives calls, runs handlers, and returns answers in
batches."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from .. import logs
from .._trunkline import Delivery, Message, Station
from ..loop import bridge
from ..queue import Queue
from ..times import Wait, wait_of
from ..tracing import handling, is_installed, is_recorded
from . import forks
from .backoff import Backoff, Bury, Fixed, RetryAfter, as_native
from .context import Context, Running, enter
from .ending import CANCELLED, CANCELLED_REASON, RELEASED, UNENDED, Ending, failed, log, unreadable
from .hanging import Hanging
from .interrupt import cancellations, may_be_of_user, shielded
from .processes import GivenUp, Processes, ProcessesClosed, ProcessFailed, default_count
from .results import check_returned, error_in, outcomes
from .summary import Summary, summary_of
from .task import Task
from .threads import NotBegun, Threads

_logger = logging.getLogger("trunkline.worker")
#: Calls a handler with a payload, or with those of a batch. Batches have no context.
_HandlerCall = Callable[[Any, Any, Delivery], Awaitable[Any]]
#: The number of seconds to wait for the release of messages after a second cancellation.
_LAST = 1.0
#: The number of seconds for which a message is kept whose handler could not start.
_PAUSE = 1.0


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
        in_processes = [task for task in tasks if task.place == "process"]
        count = max(default_count() if processes is None else processes, len(in_processes))
        # The number of running messages is limited to the number of processes. All tasks share the
        # processes; in a drain each task has an equal part.
        each = count // max(1, len(in_processes)) if drains else count
        self._options: list[dict[str, Any]] = [
            {
                "queue": queue.native,
                "weight": task.weight,
                "batch": task.batch,
                # The process may have to be started first, and the time limit of the handler begins
                # after that.
                "timeout": None if task.place == "process" else task.timeout,
                "lease": task.lease,
                "isolates": task.isolates,
                "shutdown_after": shutdown_after,
                "retry": as_native(task.retry),
                "asks": not isinstance(task.retry, (Backoff, Fixed)),
                "processes": each if task.place == "process" else None,
            }
            for task, queue in zip(tasks, queues)
        ]
        logs.begin()
        self._drains = drains
        self._new_station = partial(Station, self._options, concurrency, wait_of(wait), drains, reports)
        self._station = self._new_station()
        self._loop = asyncio.get_running_loop()
        self._running: dict[int, tuple[asyncio.Task[None], Context | None, Delivery]] = {}
        #: The station's news that have not been acted on.
        self._arrived: deque[Delivery | tuple[str, int]] = deque()
        self._answers: list[tuple[Delivery, Ending | list[Ending]]] = []
        #: The next call of `_settle`.
        self._settling: asyncio.Handle | None = None
        self._failure: BaseException | None = None
        self._ends = self._is_left = False
        self._owner: asyncio.Task[Any] | None = None
        self._cancellations = 0
        self._end_fork = forks.ending()
        self._hanging = Hanging(concurrency, self._fail)
        self._threads = Threads(self._hanging)
        #: The numbers of the calls that the worker has given up on, and said so.
        self._given_up: set[int] = set()
        self._processes = Processes(count, in_processes, self._threads) if in_processes else None
        #: The start of the processes, which a stop cancels.
        self._starting: asyncio.Task[ProcessFailed | None] | None = None
        self._starts: list[Callable[[Delivery], None]] = [self._start_of(task) for task in tasks]

    async def live(self) -> Summary:
        """Works until the caller is cancelled, then shuts down gracefully."""
        self._owner = asyncio.current_task()
        self._cancellations = cancellations(self._owner)
        try:
            if self._processes is not None and not await self._has_started(self._processes):
                return Summary()
            total = summary = await self._work()
            # In a drain, a handler of one queue may have enqueued into another queue after that
            # queue was empty.
            while self._drains and len(self.tasks) > 1 and not (summary.is_nothing or self._ends):
                self._station.close()
                self._station = self._new_station()
                summary = await self._work()
                total += summary
            return total
        finally:
            # This object is in cycles, so its end would have to wait for the garbage collector.
            self._station.close()
            self._options.clear()
            self._threads.close()
            if self._processes is not None:
                self._processes.close()

    async def _work(self) -> Summary:
        """Works until the station ends: in a drain, once its queues are empty."""
        try:
            self._loop.add_reader(self._station.fileno(), self._news)
            counts = asyncio.ensure_future(self._station.run(bridge()))
            run = asyncio.ensure_future(summary_of(counts))
            try:
                summary = await asyncio.shield(run)
            except asyncio.CancelledError:
                self.stop()
                await self._wait_for(run, counts)
                raise
            if self._failure is not None:
                raise self._failure
            return summary
        finally:
            self._loop.remove_reader(self._station.fileno())
            self._release_unbegun()

    def stop(self) -> None:
        """Starts the graceful shutdown."""
        self._ends = True
        self._station.stop()
        if self._starting is not None:
            self._starting.cancel()

    async def _has_started(self, processes: Processes) -> bool:
        """Starts the processes. Returns false if the worker was stopped before they were ready,
        because the import of their modules may take minutes."""
        if self._ends:
            return False
        self._starting = asyncio.ensure_future(processes.start())
        try:
            failure = await self._starting
        except asyncio.CancelledError:
            if self._ends and cancellations(self._owner) == self._cancellations:
                return False
            raise
        finally:
            self._starting = None
        if failure is not None:
            self._fail(failure)
        return True

    def running(self) -> list[Running]:
        """Returns the messages that are being handled, except those in batches."""
        return [context.running() for _, context, _ in self._running.values() if context is not None]

    def _fail(self, failure: BaseException, reason: str | None = None) -> None:
        """Shuts down gracefully with this failure. During a shutdown, further failures are
        ignored."""
        if not self._ends:
            log(logging.ERROR, "the worker ends: %s", reason or failure)
            self._failure = failure
            self.stop()

    async def _wait_for(self, run: asyncio.Future[Summary], counts: asyncio.Future[dict[str, int]]) -> None:
        """Waits until the run has ended. The wait is limited after a second cancellation, or at the
        end of the event loop, which cancels the run: a process that exits has to release its
        messages first."""
        try:
            with shielded():
                await asyncio.wait([run])
        except asyncio.CancelledError:
            pass  # the caller is cancelled anyway
        if not counts.done():
            self._release_unbegun()
            await asyncio.wait([counts], timeout=_LAST)
        if not run.cancelled() and run.done() and (failure := run.exception()) is not None:
            raise failure

    def _news(self) -> None:
        self._end_fork(None)  # a handler's fork would take the parent's events
        self._arrived.extend(self._station.news())
        one = None
        try:
            while self._arrived:
                one = self._arrived.popleft()
                if isinstance(one, Delivery):
                    self._starts[one.task](one)
                else:
                    self._give_up(*one)
        except BaseException:
            # A signal handler raised in the loop's code. The rest must not be lost.
            self._loop.call_soon(self._news)
            if isinstance(one, tuple) and one[1] not in self._given_up:
                self._arrived.appendleft(one)
            elif isinstance(one, Delivery) and one.nr not in self._running:
                self._release([one])
            raise

    def _give_up(self, what: str, nr: int) -> None:
        """Tells a handler that its result will be discarded, and cancels it if its call is late or
        over. If the call is late, decides how its messages end."""
        if (found := self._running.get(nr)) is None:
            return
        running, context, delivery = found
        if context is not None:
            context.cancel()
        if what == "lost" or nr in self._given_up:
            return
        reason = self._why_over(what, delivery, context)
        self._tell_cancelled(delivery, reason)
        if what == "late":
            endings: list[Ending] = [CANCELLED] * len(delivery.messages())
            self._station.settle([(delivery, self._decided(delivery, endings, TimeoutError(reason)))], self._ends)
        self._given_up.add(nr)
        self._hanging.cancel(running)
        running.add_done_callback(partial(self._forget, nr))

    def _forget(self, nr: int, _: object) -> None:
        """Removes a handler that was cancelled before its first step, because it did not remove
        itself."""
        self._running.pop(nr, None)
        self._given_up.discard(nr)

    def _release_unbegun(self) -> None:
        """Releases the messages of handlers that were cancelled before their first step, for
        example with the whole event loop, and so have not answered.

        Such a cancellation may still be due in this turn of the loop, after this call.
        """
        unbegun: list[Delivery] = []
        for task, _, delivery in self._running.values():
            coroutine: Any = task.get_coro()
            if task.cancelled() or inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
                task.cancel()
                unbegun.append(delivery)
        self._arrived.extend(self._station.news())
        while self._arrived:
            one = self._arrived.popleft()
            if isinstance(one, Delivery):
                unbegun.append(one)
            else:
                self._give_up(*one)
        self._release(unbegun)

    def _release(self, deliveries: list[Delivery]) -> None:
        self._station.settle([(delivery, [RELEASED] * len(delivery.messages())) for delivery in deliveries], True)

    def _start_of(self, task: Task[Any]) -> Callable[[Delivery], None]:
        create_task, running = self._loop.create_task, self._running
        handle = self._handler(task) if task.batch is None else self._batches(task)

        def start(delivery: Delivery) -> None:
            context = Context(delivery, task.queue) if task.batch is None else None
            handling_it = create_task(handle(delivery, context))
            if not handling_it.done():  # an eager task may have answered already
                running[delivery.nr] = handling_it, context, delivery

        return start

    def _handler(self, task: Task[Any]) -> Callable[[Delivery, Any], Any]:
        """Returns a coroutine function that handles one delivery. A delivery ends once: as done
        after the last line that can raise, otherwise as a failure or a release. A delivery whose
        handler must not begin is released."""
        decode, call, is_traced, takes_messages = task.codec.decode, self._call(task), is_recorded(), task.takes_messages
        is_logged, is_limited = _logger.isEnabledFor(logging.DEBUG), task.timeout is not None

        async def handle(delivery: Delivery, context: Context) -> None:
            ending: Ending = UNENDED
            is_read = False
            try:
                if not delivery.begin():
                    ending = RELEASED
                    return
                context.began = time.monotonic()
                payload = decode(delivery.payload)
                is_read = True
                enter(context)
                if takes_messages:
                    payload = delivery.message(payload)
                if is_traced or is_installed and delivery.has_metadata:
                    with handling(task.queue, delivery.metadata, context.id, context.attempt):
                        check_returned(await call(payload, context, delivery))
                else:
                    result = await call(payload, context, delivery)
                    if result is not None:
                        check_returned(result)
                if is_limited:
                    delivery.end()  # another handler may block the loop before this one is answered
                ending = None
            except BaseException as error:
                delivery.end()
                ending = self._failed(task, delivery.attempts, error, is_read)
                self._tell(task, context, error, ending)
            finally:
                self._answer(delivery, ending)
            if is_logged:
                took = time.monotonic() - context.began
                log(logging.DEBUG, "message %d of %s took %.3f s", context.id, task.queue, took)

        return handle

    def _batches(self, task: Task[Any]) -> Callable[[Delivery, Any], Any]:
        """Returns a coroutine function that handles one batch. Each message ends with its own
        outcome. If the handler returns no outcomes, all messages end as the call did."""
        decode, call, takes_messages = task.codec.decode, self._call(task), task.takes_messages

        async def handle(delivery: Delivery, _: object) -> None:
            endings: list[Ending] = []
            try:
                messages = delivery.messages()
                endings = [RELEASED] * len(messages)
                if not delivery.begin():
                    return
                endings = [UNENDED] * len(messages)
                payloads: list[Any] = []
                places: list[int] = []
                for place, message in enumerate(messages):
                    try:
                        payload = decode(message.payload)
                        payloads.append(message.with_payload(payload) if takes_messages else payload)
                    except BaseException as error:
                        endings[place] = self._failed(task, message.attempts, error, False)
                        if endings[place] is RELEASED:
                            endings = [RELEASED] * len(messages)
                            return
                        logs.has_logged(task.queue, message.id, message.attempt)
                        log(logging.WARNING, "message %d of %s cannot be read", message.id, task.queue, error=error)
                        continue
                    places.append(place)
                try:
                    result = (await call(payloads, None, delivery)) if payloads else None
                    each = [None] * len(payloads) if result is None else outcomes(result)
                    if len(each) != len(payloads):
                        raise TypeError(f"the handler returned {len(each)} outcomes for {len(payloads)} messages")
                except BaseException as error:
                    delivery.end()
                    for place in places:
                        endings[place] = self._failed(task, messages[place].attempts, error, True)
                    if endings[places[0]] is not RELEASED and endings[places[0]] is not CANCELLED:
                        log(logging.WARNING, "%d messages of %s failed", len(places), task.queue, error=error)
                        for place in places:
                            logs.has_logged(task.queue, messages[place].id, messages[place].attempt)
                    return
                delivery.end()
                for place, outcome in zip(places, each):
                    message, its_error = messages[place], self._error_in(outcome)
                    endings[place] = None if its_error is None else failed(task.retry, message.attempts, its_error)
                    if its_error is not None:
                        self._tell(task, message, its_error, endings[place])
            finally:
                self._answer(delivery, endings)

        return handle

    def _error_in(self, outcome: object) -> BaseException | None:
        """Returns the error of one message of a batch, if there is one."""
        try:
            return error_in(outcome)
        except BaseException as own:
            return own

    def _failed(self, task: Task[Any], attempts: int, error: BaseException, is_read: bool) -> Ending:
        """Decides how a message ends after its handler raised an exception."""
        self._end_fork(error)
        if isinstance(error, ProcessFailed):
            self._fail(error)
            return RELEASED
        if isinstance(error, (NotBegun, GivenUp, ProcessesClosed)):
            return RELEASED
        if isinstance(error, asyncio.CancelledError):
            # Either the event loop is ending, or the handler cancelled itself. In the first case
            # the worker itself is also cancelled.
            return CANCELLED
        if isinstance(error, KeyboardInterrupt) and (task.place == "loop" or not is_read) and may_be_of_user(error):
            if self._is_second(error):
                self._leave(error)
                return RELEASED
            self._fail(error, f"KeyboardInterrupt, from Ctrl-C or from the handler of queue {task.queue}")
        return (failed if is_read else unreadable)(task.retry, attempts, error)

    def _is_second(self, error: BaseException) -> bool:
        """Returns true if the shutdown had begun before this error, or had been requested by a
        cancellation. A handler that blocks the event loop delays the cancellation."""
        ends = self._ends or cancellations(self._owner) > self._cancellations
        return ends and error is not self._failure  # all messages of a batch have the same error

    def _leave(self, error: BaseException) -> None:
        """Cancels all handlers. Raises the error out of the event loop in its next turn, after the
        answer, so that the program ends."""
        self.stop()
        for task, _, _ in self._running.values():
            task.cancel()  # otherwise another handler may block the loop
        if not self._is_left:
            self._is_left = True
            self._loop.call_soon(self._raise, error)

    def _raise(self, error: BaseException) -> None:
        self._settle()  # the loop may not run again
        raise error

    def _call(self, task: Task[Any]) -> _HandlerCall:
        """Returns a function that calls the handler in its place: loop, thread or process."""
        function, name, takes_payload = task.function, task.context, task.takes_payload
        if task.place == "process":
            assert self._processes is not None
            return self._paused(task, self._processes.call(task))

        def call(payload: Any, context: Any, _: object = None) -> Any:
            arguments = (payload,) if takes_payload else ()
            return function(*arguments) if name is None else function(*arguments, **{name: context})

        if task.place == "loop":
            if not task.is_wrapped:
                return call if name is not None or not takes_payload else lambda payload, _, __: function(payload)

            async def wrapped(payload: Any, context: Any, _: object) -> Any:
                result = call(payload, context)
                return await result if inspect.isawaitable(result) else result

            return wrapped
        threads = self._threads

        async def in_thread(payload: Any, context: Any, delivery: Delivery) -> Any:
            within = contextvars.copy_context()

            def work() -> Any:
                try:
                    return within.run(call, payload, context)
                finally:
                    delivery.end()

            return await threads.call(work)

        return self._paused(task, in_thread)

    def _paused(self, task: Task[Any], call: _HandlerCall) -> _HandlerCall:
        """Returns a call that waits for a moment if the handler cannot start, because its message
        will be due again at once."""
        # If the call exceeded the task's timeout, an attempt would be counted.
        pause = _PAUSE if task.timeout is None else min(_PAUSE, task.timeout / 2)

        async def paused(payload: Any, context: Any, delivery: Delivery) -> Any:
            try:
                return await call(payload, context, delivery)
            except NotBegun as error:
                log(logging.WARNING, "a handler of %s cannot start, and its message is given back: %s", task.queue, error)
                await asyncio.sleep(pause)
                raise

        return paused

    def _tell(self, task: Task[Any], message: Context | Message[bytes], error: BaseException, ending: Ending) -> None:
        """Logs a failure, with its traceback unless the handler raised ``Bury`` or
        ``RetryAfter``."""
        if ending is None or ending is RELEASED or ending is CANCELLED:
            return
        kind, _, reason = ending
        logs.has_logged(task.queue, message.id, message.attempt)
        is_said = isinstance(error, (Bury, RetryAfter))
        log(
            logging.INFO if is_said else logging.WARNING,
            "message %d of %s failed: %s",
            message.id,
            task.queue,
            reason.partition("\n")[0],
            error=None if is_said else error,
            about=lambda: {"queue": task.queue, "id": message.id, "attempt": message.attempt, "verdict": kind},
        )

    def _why_over(self, what: str, delivery: Delivery, context: Context | None) -> str:
        """Returns the reason why the worker has given up on a call: its timeout, or the end of the
        worker."""
        timeout = self.tasks[delivery.task].timeout
        took = 0.0 if context is None else time.monotonic() - context.began
        if timeout is None or what != "late" and self._ends and took < timeout:
            return "the handler did not end before the worker, which releases the message"
        return f"the handler took longer than {timeout:g} s"

    def _tell_cancelled(self, delivery: Delivery, reason: str) -> None:
        """Logs why a handler was cancelled: its own ending does not contain the reason."""
        task, messages = self.tasks[delivery.task], delivery.messages()
        for message in messages:
            logs.has_logged(task.queue, message.id, message.attempt)
            about = {"queue": task.queue, "id": message.id, "attempt": message.attempt}
            log(logging.WARNING, "message %d of %s: %s", message.id, task.queue, reason, about=partial(dict[str, Any], about))

    def _answer(self, delivery: Delivery, ending: Ending | list[Ending]) -> None:
        self._end_fork(None)
        self._running.pop(delivery.nr, None)
        self._answers.append((delivery, ending))
        if self._settling is None and not self._loop.is_closed():  # in a closed loop, nothing more runs
            try:
                self._settling = self._loop.call_soon(self._settle)
            except BaseException:
                self._settle()  # a signal handler raised in the loop's code, and no turn is scheduled
                raise

    def _settle(self) -> None:
        self._settling = None
        answers, self._answers = self._answers, []
        # If the worker was cancelled together with its handlers, `_ends` is set by now. It decides
        # the endings of cancelled handlers.
        if not self._ends:
            for place, (delivery, ending) in enumerate(answers):
                if ending is not None and delivery.nr not in self._given_up and (ending is CANCELLED or CANCELLED in ending):
                    self._tell_cancelled(delivery, CANCELLED_REASON)
                    answers[place] = delivery, self._decided(delivery, ending, asyncio.CancelledError(CANCELLED_REASON))
        self._station.settle(answers, self._ends)

    def _decided(self, delivery: Delivery, ending: Ending | list[Ending], error: BaseException) -> list[Ending]:
        """Returns the endings of a delivery's messages, where the retry policy has decided about
        those of a cancelled handler."""
        retry = self.tasks[delivery.task].retry
        each = zip(delivery.messages(), ending if isinstance(ending, list) else [ending])
        return [failed(retry, message.attempts, error) if one is CANCELLED else one for message, one in each]
