"""Tests handlers, and how their results end messages."""

from __future__ import annotations

import asyncio
import copy
import logging
import os
import pickle
import threading
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import anyio
import pytest
import trunkline
from trunkline.testing import assert_enqueued, assert_not_enqueued, enqueued, shift


@dataclass
class Mail:
    to: str


def square(number: int) -> None:
    """A handler for a process."""
    if number == 3:
        os._exit(9)
    if number == 4:
        raise ValueError("four")


#: The application in which processes find their handler.
processes = trunkline.App()
squares = processes.task(queue="squares", place="process", retry=trunkline.Fixed(3600))(square)


def test_progress_is_logged_once_a_second_and_at_its_end(url: str, run: Any, caplog: pytest.LogCaptureFixture) -> None:
    app = trunkline.App(url)

    @app.task()
    async def counts(number: int, context: trunkline.Context) -> None:
        for done in range(100):
            context.progress(done)  # without `of`, each number from 1 on is the whole
        context.progress(100, of=100)

    async def story() -> None:
        await app.setup()
        await counts.enqueue(1)
        with caplog.at_level(logging.INFO, "trunkline.worker"):
            assert (await app.drain()).done == 1
        # The first one, the first end, and perhaps one for a second that has passed.
        assert 2 <= len([one for one in caplog.records if one.getMessage().startswith("progress of")]) <= 4

    run(story())


async def _until(what: Any) -> None:
    while not await what() if asyncio.iscoroutinefunction(what) else not what():
        await asyncio.sleep(0.01)


def test_the_example_of_the_readme(url: str, run: Any) -> None:
    app = trunkline.App(url)
    sent: list[str] = []

    @app.task(queue="mails", retry=trunkline.Backoff(max_attempts=5), timeout=30)
    async def send(mail: Mail) -> None:
        sent.append(mail.to)

    async def story() -> None:
        await app.setup()
        await send.enqueue(Mail("ada"))
        await send.draft(Mail("bob")).after(minutes=5)
        await assert_enqueued(send, Mail("bob"))
        await assert_enqueued(send, lambda mail: mail.payload == Mail("ada"))
        with pytest.raises(AssertionError, match="holds 2:\n.*Mail\\(to='ada'\\)"):
            await assert_enqueued(send, Mail("carl"))
        assert (await app.drain()).done == 1
        await assert_not_enqueued(send, Mail("ada"))
        await shift(await app.queue(send), timedelta(minutes=5))
        assert (await app.drain()).done == 1
        assert sent == ["ada", "bob"]
        await send(Mail("direct"))
        assert sent[-1] == "direct"

    run(story())


def test_failures_are_retried_buried_or_delayed_as_handlers_say(url: str, run: Any) -> None:
    app = trunkline.App(url)

    @app.task(queue="mails", retry=lambda attempt, error: None if isinstance(error, KeyError) else attempt * 100.0)
    async def send(what: str) -> None:
        raise {"bury": trunkline.Bury("no such address"), "after": trunkline.RetryAfter(50), "key": KeyError("k")}.get(
            what, ValueError("later")
        )

    async def story() -> None:
        await app.setup()
        await send.enqueue_many(["bury", "after", "key", "other"])
        summary = await app.drain()
        assert (summary.dead, summary.retried) == (2, 2)
        queue = await app.queue(send)
        assert {letter.payload: letter.error.split(" (")[0] for letter in await queue.dead_letters()} == {
            "bury": "no such address",
            "key": "KeyError: 'k'",
        }
        due = {one.payload: (one.due_at - one.enqueued_at).total_seconds() for one in await enqueued(send)}
        assert 49 < due["after"] < 60 and 99 < due["other"] < 110
        (other,) = [one for one in await enqueued(send) if one.payload == "other"]
        assert other.error and "ValueError: later" in other.error and "test_worker.py" in other.error

    run(story())


def test_a_handler_learns_of_its_delivery_wherever_it_runs(url: str, run: Any) -> None:
    app = trunkline.App(url)
    told: list[Any] = []

    def note(context: trunkline.Context) -> None:
        assert trunkline.current() is context
        told.append((context.id, context.attempt, context.attempts, context.metadata, context.queue))
        context.progress(1, of=2)

    @app.task()
    async def within(mail: Mail, context: trunkline.Context) -> None:
        await context.extend(60)
        note(context)

    @app.task()
    def thread(mail: Mail, *, context: trunkline.Context) -> None:
        assert threading.current_thread() is not threading.main_thread()
        note(context)

    @app.task()
    async def message(mail: trunkline.Message[Mail]) -> None:
        told.append((mail.id, mail.attempt, mail.attempts, mail.metadata, "message"))
        assert mail.payload == Mail("ada")

    async def story() -> None:
        await app.setup()
        ids = [await task.draft(Mail("ada")).metadata({"a": "b"}) for task in (within, thread, message)]
        assert (await app.drain()).done == 3
        names = ["within", "thread", "message"]
        assert sorted(told, key=lambda one: names.index(one[4])) == [
            (id, 1, 1, {"a": "b"}, name) for id, name in zip(ids, names)
        ]

    run(story())


def test_a_batch_is_answered_message_by_message(url: str, run: Any) -> None:
    app = trunkline.App(url)
    sizes: list[int] = []

    @app.task(batch=10, retry=trunkline.Fixed(3600), max_attempts=5)
    def sums(numbers: list[int]) -> list[Exception | None]:
        sizes.append(len(numbers))
        return [ValueError(f"{number} is odd") if number % 2 else None for number in numbers]

    @app.task(batch=10, retry=trunkline.Fixed(3600))
    async def broken(numbers: list[int]) -> None:
        raise RuntimeError("all of them")

    async def story() -> None:
        await app.setup()
        await sums.enqueue_many(range(20))
        await broken.enqueue_many(range(5))
        summary = await app.drain()
        assert (summary.done, summary.retried) == (10, 15) and max(sizes) > 1
        assert {one.payload for one in await enqueued(sums)} == set(range(1, 20, 2))

    run(story())


def test_handlers_in_processes_survive_one_that_dies(url: str, run: Any) -> None:
    processes.url = url

    async def story() -> None:
        await processes.setup()
        await squares.enqueue_many([1, 4])
        summary = await processes.drain()
        assert (summary.done, summary.retried) == (1, 1)
        await squares.enqueue(3)
        assert (await processes.drain()).retried == 1
        await squares.enqueue(5)
        assert (await processes.drain()).done == 1
        errors = {one.payload: one.error or "" for one in await enqueued(squares)}
        assert "ValueError: four" in errors[4] and "died" in errors[3]

    run(story())


def test_a_timeout_cancels_the_handler_and_fails_the_attempt(url: str, run: Any) -> None:
    app = trunkline.App(url)
    cancelled: list[str] = []

    @app.task(timeout=0.05, retry=trunkline.Fixed(3600))
    async def slow(mail: Mail) -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.append("loop")
            raise

    @app.task(timeout=0.05, retry=trunkline.Fixed(3600))
    def slow_thread(mail: Mail, context: trunkline.Context) -> None:
        assert context.wait_cancelled(30)
        cancelled.append("thread")

    async def story() -> None:
        await app.setup()
        for task in (slow, slow_thread):
            await task.enqueue(Mail("ada"))
        assert (await app.drain()).retried == 2
        await _until(lambda: len(cancelled) == 2)
        for task in (slow, slow_thread):
            (one,) = await enqueued(task)
            assert one.error and "longer than" in one.error

    run(story())


def test_a_cancelled_message_tells_its_handler(url: str, run: Any) -> None:
    app = trunkline.App(url)
    began, told = asyncio.Event(), []

    @app.task()
    async def slow(mail: Mail, context: trunkline.Context) -> None:
        began.set()
        while not context.is_cancelled:
            await asyncio.sleep(0.01)
        told.append(context.id)

    async def story() -> None:
        await app.setup()
        id = await slow.enqueue(Mail("ada"))
        running = asyncio.ensure_future(app.run())
        await began.wait()
        assert await (await app.queue(slow)).cancel(id) == [id]
        await _until(lambda: told == [id])
        app.stop()
        assert (await running).lost == 1

    run(story())


def test_orderly_end_waits_for_handlers_and_gives_back_rest(url: str, run: Any) -> None:
    app = trunkline.App(url)
    began, go = asyncio.Event(), asyncio.Event()
    begun: list[int] = []

    @app.task(max_batch=1)
    async def slow(number: int) -> None:
        begun.append(number)
        if len(begun) == 2:
            began.set()
        if number == 0:
            await go.wait()
        else:
            await asyncio.sleep(3600)

    async def story() -> None:
        await app.setup()
        await slow.enqueue_many(range(20))
        running = asyncio.ensure_future(app.run(concurrency=2, shutdown_after=0.3))
        await began.wait()
        app.stop()
        go.set()
        summary = await running
        assert summary.done == 1 and summary.released >= 1
        stats = await (await app.queue(slow)).stats()
        assert (stats.due, stats.leased, stats.dead) == (19, 0, 0)
        assert all(one.attempt - 1 <= 0 or one.error is None for one in await enqueued(slow))

    run(story())


def test_a_run_that_is_cancelled_ends_in_order(url: str, run: Any) -> None:
    app = trunkline.App(url)
    began = asyncio.Event()

    @app.task()
    async def quick(number: int) -> None:
        began.set()
        await asyncio.sleep(0.1)

    async def story() -> None:
        await app.setup()
        await quick.enqueue(1)
        running = asyncio.ensure_future(app.run())
        await began.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert (await (await app.queue(quick)).stats()).messages == 0, "the message was handled and acknowledged"

    run(story())


def test_a_run_that_a_scope_cancels_waits_for_its_handlers(url: str, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # After a second cancellation, the run would end in a few turns of the loop.
    monkeypatch.setattr("trunkline.worker.life._LAST", 0.0)
    app = trunkline.App(url)
    began, may_end = asyncio.Event(), asyncio.Event()

    @app.task(max_attempts=1)
    async def slow(number: int) -> None:
        began.set()
        await may_end.wait()

    async def story() -> None:
        await app.setup()
        await slow.enqueue(1)
        with anyio.CancelScope() as scope:

            async def cancel() -> None:
                await began.wait()
                scope.cancel()
                for _ in range(100):
                    await asyncio.sleep(0)
                may_end.set()

            cancelling = asyncio.ensure_future(cancel())
            try:
                await app.run()
            finally:
                assert may_end.is_set(), "the run ended before its handler"
        assert scope.cancelled_caught
        await cancelling
        assert (await (await app.queue(slow)).stats()).messages == 0, "the message was handled and acknowledged"

    run(story())


def test_unreadable_payload_fails_its_attempt_alone(url: str, run: Any) -> None:
    app = trunkline.App(url)
    seen: list[Mail] = []

    @app.task(queue="mails", max_attempts=1)
    async def send(mail: Mail) -> None:
        seen.append(mail)

    async def story() -> None:
        await app.setup()
        anything = await (await app.db()).queue("mails")
        await anything.enqueue_many([{"to": "a"}, {"to": 1}, [], {"to": "b"}])
        await app.drain()
        assert sorted(mail.to for mail in seen) == ["a", "b"]
        letters = await anything.dead_letters()
        assert len(letters) == 2 and all("cannot be read" in letter.error for letter in letters)

    run(story())


def test_schedules_are_put_in_force_by_setup(url: str, run: Any) -> None:
    app = trunkline.App(url)
    runs: list[int] = []

    @app.schedule("every 1 second")
    @app.task()
    async def tick() -> None:
        runs.append(1)

    async def story() -> None:
        await app.setup()
        running = asyncio.ensure_future(app.run())
        await _until(lambda: len(runs) >= 2)
        app.stop()
        await running
        (told,) = await (await app.db()).schedules()
        assert (told.name, told.queue, told.expression) == ("tick", "tick", "every 1 second")

    run(story())


def test_impossible_declarations_are_refused_at_once() -> None:
    app = trunkline.App()

    @app.task(queue="a")
    async def one(mail: Mail) -> None: ...

    with pytest.raises(ValueError, match="already has a task, one"):
        app.task(queue="a")(lambda mail: None)
    with pytest.raises(TypeError, match="takes one payload, but other is a second"):

        @app.task()
        async def two(mail: Mail, other: int) -> None: ...

    with pytest.raises(TypeError, match="would block the event loop"):
        app.task(queue="b", place="loop")(lambda mail: None)


def test_a_trace_goes_through_messages(url: str, run: Any) -> None:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    app = trunkline.App(url)

    @app.task()
    async def second(mail: Mail) -> None: ...

    @app.task()
    async def first(mail: Mail) -> None:
        await second.enqueue(mail)

    async def story() -> None:
        await app.setup()
        with trace.get_tracer("test").start_as_current_span("request") as request:
            await first.enqueue(Mail("ada"))
        assert (await app.drain()).done == 2
        named = {span.name: span for span in spans.get_finished_spans()}
        ids = {span.context.trace_id for span in named.values()}
        assert set(named) == {"request", "handle first", "handle second"}
        assert ids == {request.get_span_context().trace_id}
        assert named["handle second"].parent.span_id == named["handle first"].context.span_id
        provider.shutdown()  # otherwise it would keep the spans of all later tests

    run(story())


def test_running_messages_are_told_with_progress(url: str, run: Any) -> None:
    app = trunkline.App(url)
    may_end = asyncio.Event()

    @app.task()
    async def within(number: int, context: trunkline.Context) -> None:
        if number == 1:
            context.progress(3, of=10, note="lines")
        await may_end.wait()

    async def story() -> None:
        await app.setup()
        assert app.running() == []
        ids = await within.enqueue_many([0, 1])
        working = asyncio.ensure_future(app.run())
        await _until(lambda: len(app.running()) == 2 and any(one.done for one in app.running()))
        silent, told = sorted(app.running(), key=lambda one: one.id)
        assert (silent.queue, silent.id, silent.attempt, silent.done, silent.of, silent.note) == ("within", ids[0], 1, None, None, "")
        assert (told.id, told.done, told.of, told.note) == (ids[1], 3, 10, "lines") and 0 <= told.seconds < 60
        may_end.set()
        await _until(lambda: not app.running())
        app.stop()
        assert (await working).done == 2

    run(story())


def test_a_drain_works_on_what_handlers_gave_back(url: str, run: Any) -> None:
    app = trunkline.App(url)
    seen: dict[int, int] = {}

    @app.task()
    async def numbers(number: int, context: trunkline.Context) -> None:
        seen[number] = seen.get(number, 0) + 1
        if seen[number] < 10:
            await context.release()

    async def story() -> None:
        await app.setup()
        for number in range(40):
            await numbers.enqueue(number)
            assert (await app.drain()).done == 1, number

    run(story())


def test_handlers_that_are_given_up_at_once_are_forgotten(url: str, run: Any) -> None:
    app = trunkline.App(url)

    @app.task(timeout=0.001, retry=trunkline.Fixed(0, max_attempts=1), lease=30)
    async def late(number: int) -> None:
        await asyncio.sleep(3600)

    async def story() -> None:
        await app.setup()
        queue = await app.queue(late)
        await queue.enqueue_many(range(300))
        working = asyncio.ensure_future(app.run())
        while (await queue.stats()).dead < 300:
            # Blocks the loop for longer than the timeout, so that calls end in the turn after they began.
            time.sleep(0.002)
            await asyncio.sleep(0)
        while app.running():
            await asyncio.sleep(0)
        app.stop()
        await working

    run(story())


def with_messages(messages: list[trunkline.Message[int]]) -> None:
    if not all(isinstance(message.payload, int) and message.metadata == {"a": "b"} for message in messages):
        raise AssertionError(messages)


def with_message(message: trunkline.Message[int]) -> None:
    with_messages([message])


in_processes = trunkline.App()
of_messages = in_processes.task(queue="lists", place="process", batch=5)(with_messages)
of_message = in_processes.task(queue="ones", place="process")(with_message)


def test_messages_go_to_processes_and_can_be_copied(url: str, run: Any) -> None:
    in_processes.url = url

    async def story() -> None:
        await in_processes.setup()
        for task in (of_messages, of_message):
            await task.enqueue_many([task.draft(number).metadata({"a": "b"}) for number in range(7)])
        summary = await in_processes.drain(processes=2)
        assert (summary.done, summary.retried) == (14, 0)
        queue = await in_processes.queue(of_message)
        await queue.draft(5).metadata({"a": "b"}).enqueue()
        (message,) = await queue.lease(1)
        for made in (copy.copy(message), copy.deepcopy(message), pickle.loads(pickle.dumps(message))):
            for name in ("id", "attempt", "attempts", "payload", "enqueued_at", "metadata", "key", "lease"):
                assert getattr(made, name) == getattr(message, name), name
        assert pickle.loads(pickle.dumps(message.lease)) == copy.copy(message.lease) == message.lease
        await queue.ack(made)

    run(story())


@pytest.mark.parametrize("batch", [None, 2])
def test_handlers_cancelled_before_they_begin_are_not_counted(url: str, run: Any, batch: int | None) -> None:
    app = trunkline.App(url)

    async def note(number: Any) -> None: ...

    task: Any = app.task(batch=batch, max_attempts=1)(note)  # type: ignore[call-overload]

    async def begin() -> None:
        await app.setup()
        await task.enqueue_many(range(6))

    async def ended() -> None:
        loop: Any = asyncio.get_running_loop()
        made = loop.create_task

        def cancelled(work: Any, **named: Any) -> Any:
            task = made(work, **named)
            if work.__qualname__.startswith("Life._handler") or work.__qualname__.startswith("Life._batches"):
                for one in asyncio.all_tasks():
                    one.cancel()
            return task

        loop.create_task = cancelled
        await app.run(shutdown_after=1)

    run(begin())
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(ended())

    async def story() -> None:
        queue = await app.queue(task)
        done = 0
        while done < 6:  # a worker without its loop releases the last messages in the background
            done += (await app.drain()).done
            assert (await queue.stats()).dead == 0

    run(story())


def test_a_forgotten_form_for_threads_fails_instead_of_acknowledging(url: str, run: Any) -> None:
    app = trunkline.App(url)
    seen: list[str] = []

    @app.task(retry=trunkline.Fixed(0))
    def numbers(number: int, context: trunkline.Context) -> None:
        seen.append("called")
        if len(seen) == 1:
            context.release()  # fails: this is a thread
        elif len(seen) == 2:
            context.extend_in_thread(60)
            context.release_in_thread()

    async def story() -> None:
        await app.setup()
        await numbers.enqueue(1)
        summary = await app.drain()
        assert (summary.done, summary.retried) == (1, 1)
        assert seen == ["called"] * 3

    run(story())


def test_a_context_that_direct_calls_may_leave_out_is_passed(url: str, run: Any) -> None:
    app = trunkline.App(url)
    seen: list[Any] = []

    @app.task()
    async def numbers(number: int, context: trunkline.Context | None = None) -> None:
        seen.append(context and context.attempt)

    async def story() -> None:
        await app.setup()
        await numbers(1)
        await numbers.enqueue(2)
        assert (await app.drain()).done == 1
        assert seen == [None, 1]

    run(story())


def test_each_failure_is_logged_once(url: str, run: Any, caplog: pytest.LogCaptureFixture) -> None:
    app = trunkline.App(url)

    @app.task(timeout=0.05, retry=trunkline.Fixed(3600))
    async def slow(number: int) -> None:
        await asyncio.sleep(3600)

    @app.task(timeout=0.05, retry=trunkline.Fixed(3600))
    async def blocks(number: int) -> None:
        await asyncio.sleep(0)
        time.sleep(0.2)  # longer than its timeout, and no cancellation can interrupt it

    @app.task(batch=2, retry=trunkline.Fixed(3600))
    async def pairs(numbers: list[int]) -> list[Any]:
        return [ValueError("of a pair") if number == 1 else None for number in numbers]

    @app.task(retry=trunkline.Fixed(3600))
    async def wrong(number: int) -> None:
        raise ValueError("of one")

    def logged(text: str) -> list[str]:
        return [one.getMessage() for one in caplog.records if text in f"{one.getMessage()} {one.exc_info}"]

    async def story() -> None:
        await app.setup()
        for task in (slow, blocks, wrong):
            await task.enqueue(1)
        await pairs.enqueue_many([1, 2])
        summary = await app.drain()
        assert (summary.done, summary.retried) == (1, 4)
        await _until(lambda: len(logged("took longer than")) == 2)
        assert len(logged("of a pair")) == 1 and len(logged("of one")) == 1

    with caplog.at_level(logging.INFO, "trunkline"):
        run(story())
