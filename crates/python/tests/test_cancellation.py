"""A cancelled call neither loses nor duplicates a message, whenever it is cancelled."""

from __future__ import annotations

import asyncio
import random
import select
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trunkline
from trunkline.loop import bridge
from trunkline.sync import Db

from opened import opened

Messages = list[trunkline.Message[int]]
Call = Callable[[trunkline.Queue[int], trunkline.Consumer[int]], Awaitable[Messages]]

CALLS: dict[str, tuple[Call, bool]] = {
    "take": (lambda queue, _: queue.take(3), True),
    "lease": (lambda queue, _: queue.lease(3), False),
    "consumer.take": (lambda _, consumer: consumer.take(3), True),
    "consumer.lease": (lambda _, consumer: consumer.lease(3), False),
    "consumer.take within": (lambda _, consumer: consumer.take(3, within=0.005), True),
}

#: The moments at which the caller is cancelled: after a number of turns of the loop, and after a
#: number of seconds. With (0, 0.0) the caller has not started yet.
MOMENTS: list[tuple[int, float]] = [(0, 0.0), (1, 0.0), (2, 0.0), (5, 0.0), *((0, ms / 4000) for ms in range(1, 24))]


@pytest.mark.parametrize("name", CALLS)
def test_a_cancelled_dequeue_gives_back_what_came_for_it(url: str, run: Any, name: str) -> None:
    call, takes = CALLS[name]

    async def story() -> None:
        _, queue = await opened(url, int)
        numbers = range(300)
        await queue.enqueue_many(numbers)
        got: list[int] = []
        left = 0
        while len(got) < len(numbers) * 2 // 3 or left <= 5:
            turns, seconds = random.choice(MOMENTS)
            caller = asyncio.ensure_future(call(queue, queue.consumer()))
            for _ in range(turns):
                await asyncio.sleep(0)
            if seconds:
                await asyncio.sleep(seconds)
            caller.cancel()
            try:
                messages = await caller
            except asyncio.CancelledError:
                left += 1
                continue
            got += [message.payload for message in messages]
            if not takes:
                await queue.ack(messages)
        # Every message that no caller received is in the queue, due and not leased.
        while (stats := await queue.stats()).due != len(numbers) - len(got):
            await asyncio.sleep(0.005)
        assert stats.leased == 0
        got += [message.payload for message in await queue.take(1_000)]
        assert sorted(got) == list(numbers)
        assert await queue.dead_letters() == []

    run(story())


def test_message_that_comes_during_cancellation_goes_back(url: str, run: Any) -> None:
    async def story() -> None:
        _, queue = await opened(url, int)
        await queue.enqueue(1)
        for _ in range(50):
            caller = asyncio.ensure_future(queue.lease(1))
            await asyncio.sleep(0)
            # The outcome has arrived, but the task has not run since then. So the cancellation
            # comes in between.
            assert select.select([bridge().fileno()], [], [], 30)[0]
            bridge().resolve()
            assert caller.cancel()
            with pytest.raises(asyncio.CancelledError):
                await caller
            while (await queue.stats()).due != 1:
                await asyncio.sleep(0.001)
        (message,) = await queue.lease(1)
        assert message.attempts == 1, "no attempt was counted for the cancelled callers"

    run(story())


def test_timeout_around_any_verb_leaves_message_in_one_place(url: str, run: Any) -> None:
    async def story() -> None:
        _, queue = await opened(url, int)
        sent = 0
        for round in range(200):
            try:
                await asyncio.wait_for(queue.enqueue(round), random.random() / 500)
                sent += 1
            except asyncio.TimeoutError:
                pass
        held: set[int] = set()
        while (await queue.stats()).messages > 0:
            for message in await queue.lease(20):
                assert message.payload not in held, "twice"
                held.add(message.payload)
                for ending in (queue.ack(message), queue.ack(message)):
                    try:
                        await asyncio.wait_for(ending, random.random() / 500)
                        break
                    except asyncio.TimeoutError:
                        continue
                    except trunkline.LeaseLost:
                        break  # the first call acknowledged it nevertheless
        assert sent <= len(held) <= 200

    run(story())


def test_loop_that_ends_during_calls_leaves_nothing_behind(url: str) -> None:
    async def begin() -> None:
        _, queue = await opened(url, int)
        await queue.enqueue_many(range(50))

    asyncio.run(begin())

    got: list[int] = []

    async def call(queue: trunkline.Queue[int]) -> None:
        # Records the message in the step in which it arrives, because the loop runs one more turn
        # before it cancels running calls.
        got.extend(message.payload for message in await queue.take(1))

    async def leave() -> None:
        db = await trunkline.Db.connect(url)
        queue = await db.queue("mails", int)
        callers = [asyncio.ensure_future(call(queue)) for _ in range(20)]
        await asyncio.sleep(random.random() / 200)
        del callers  # asyncio.run cancels running callers, and closes the loop

    for _ in range(20):
        asyncio.run(leave())

    async def count() -> None:
        db = await trunkline.Db.connect(url)
        queue = await db.queue("mails", int)
        while (await queue.stats()).due != 50 - len(got):
            await asyncio.sleep(0.01)
        got.extend(message.payload for message in await queue.take(100))
        assert sorted(got) == list(range(50))

    asyncio.run(asyncio.wait_for(count(), 30))


class Interrupted:
    """A codec whose reader is interrupted once, as by Ctrl-C or by an exception of a signal
    handler."""

    column = "int8"

    def __init__(self, error: BaseException) -> None:
        self.error: BaseException | None = error

    def encode(self, payload: int, /) -> bytes:
        return payload.to_bytes(8, "big")

    def decode(self, payload: bytes, /) -> int:
        number = int.from_bytes(payload, "big")
        if number == 2 and self.error is not None:
            error, self.error = self.error, None
            raise error
        return number


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1), TimeoutError("the alarm clock's")], ids=repr)
@pytest.mark.parametrize("verb", ["take", "lease", "consumer.take", "consumer.lease"])
def test_an_interrupted_reader_counts_no_attempt(url: str, verb: str, error: BaseException) -> None:
    db = Db.connect(url)
    db.migrate()
    db.create_queue("numbers", int, max_attempts=1)
    queue = db.queue("numbers", Interrupted(error))
    queue.enqueue_many(range(5))
    of: Any = queue.consumer() if "." in verb else queue
    call = getattr(of, verb.rpartition(".")[2])
    with pytest.raises(type(error)):
        call(5)
    limit = time.monotonic() + 30
    while queue.stats().due < 5:
        assert time.monotonic() < limit, queue.stats()
    assert queue.stats().dead == 0
    messages = call(5)
    assert sorted(message.payload for message in messages) == list(range(5))
    assert all(message.attempts <= 1 for message in messages)


class Panic(BaseException):
    """An exception like those of codecs in Rust, which are no ``Exception``."""


@pytest.mark.parametrize("error", [ValueError("never"), Panic("index out of bounds")])
@pytest.mark.parametrize("verb", ["lease", "consumer.lease", "iteration"])
def test_payload_that_cannot_be_read_fails_alone(url: str, verb: str, error: BaseException) -> None:
    class Broken(Interrupted):
        def decode(self, payload: bytes, /) -> int:
            if payload[-1] == 2:
                raise error
            return payload[-1]

    db = Db.connect(url)
    db.migrate()
    db.create_queue("numbers", int, max_attempts=1)
    queue = db.queue("numbers", Broken(KeyboardInterrupt()))
    queue.enqueue_many(range(5))
    if verb == "iteration":
        with queue.consumer() as consumer:
            messages = [next(consumer) for _ in range(4)]
            queue.ack(messages)
    else:
        of: Any = queue.consumer() if "." in verb else queue
        messages = of.lease(5)
        queue.ack(messages)
    assert [message.payload for message in messages] == [0, 1, 3, 4]
    limit = time.monotonic() + 30
    while queue.stats().dead < 1:
        assert time.monotonic() < limit, queue.stats()
    (letter,) = queue.dead_letters()
    assert letter.problem == f"{type(error).__name__}: {error}" and letter.problem in letter.error


def test_interruption_of_a_second_read_counts_no_attempt(url: str) -> None:
    errors: list[BaseException] = [ValueError("never"), KeyboardInterrupt()]

    class Twice(Interrupted):
        def decode(self, payload: bytes, /) -> int:
            if payload[-1] == 2 and errors:
                raise errors.pop(0)
            return payload[-1]

    db = Db.connect(url)
    db.migrate()
    db.create_queue("numbers", int, max_attempts=1)
    queue = db.queue("numbers", Twice(KeyboardInterrupt()))
    queue.enqueue_many(range(5))
    with pytest.raises(KeyboardInterrupt):
        queue.lease(5)
    limit = time.monotonic() + 30
    while queue.stats().due < 5:
        assert time.monotonic() < limit, queue.stats()
    assert [message.payload for message in queue.lease(5)] == list(range(5))


@pytest.mark.parametrize("face", ["sync", "async"])
def test_ended_consumer_has_given_back_messages_leased_ahead(url: str, run: Any, face: str) -> None:
    db = Db.connect(url)
    db.migrate()
    db.create_queue("numbers", int)
    queue = db.queue("numbers", int)
    queue.enqueue_many(range(50))

    async def story() -> None:
        theirs = await (await trunkline.Db.connect(url)).queue("numbers", int)
        async with theirs.consumer() as messages:
            async for message in messages:
                await theirs.ack(message)
                break

    if face == "async":
        run(story())
    else:
        with queue.consumer() as messages:
            queue.ack(next(messages))
    stats = queue.stats()  # without a wait in between
    assert (stats.due, stats.leased) == (49, 0)
