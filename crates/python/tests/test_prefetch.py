"""A consumer hands out a prefetched message only while its lease lasts, and only in its own
process."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
import trunkline
from trunkline.sync import Db, Queue

from forked import in_fork


@pytest.fixture
def queue(url: str) -> Queue[int]:
    db = Db.connect(url)
    db.migrate()
    db.create_queue("numbers", int)
    queue = db.queue("numbers", int)
    queue.enqueue_many(range(10))
    return queue


async def _opened(url: str) -> trunkline.Queue[int]:
    return await (await trunkline.Db.connect(url)).queue("numbers", int)


@pytest.mark.parametrize("face", ["sync", "async"])
def test_prefetched_leases_last_as_long_as_the_consumer_counts_on(face: str, queue: Queue[int], url: str, run: Any) -> None:
    lease = timedelta(seconds=30)
    other = Db.connect(url)
    assert other.describe_queue("numbers").lease == lease

    def check() -> None:
        leased = [one for one in queue.peek(10) if one.state == "leased"]
        assert len(leased) == 10
        assert all(one.due_at > datetime.now(timezone.utc) + lease / 2 for one in leased)

    async def story() -> None:
        theirs = await _opened(url)
        other.alter_queue("numbers", lease=1)
        async with theirs.consumer() as messages:
            await messages.__anext__()
            check()

    if face == "async":
        run(story())
        return
    other.alter_queue("numbers", lease=1)
    with queue.consumer() as messages:
        next(messages)
        check()


def test_fork_receives_no_message_of_its_parent(queue: Queue[int]) -> None:
    with queue.consumer() as messages:
        got = [next(messages)]
        assert "of which this process is a fork" in in_fork(lambda: next(messages))
        assert in_fork(messages.close) == "None"
        assert in_fork(lambda: messages.__exit__(None, None, None)) == "None"
        assert in_fork(messages.__del__) == "None"
        got += [next(messages) for _ in range(9)]
        queue.ack(got)
    assert sorted(one.payload for one in got) == list(range(10))
    assert queue.stats().messages == 0


def test_fork_receives_no_message_of_its_parent_in_an_event_loop(queue: Queue[int], url: str) -> None:
    loop = asyncio.new_event_loop()
    theirs = loop.run_until_complete(_opened(url))
    messages = theirs.consumer()
    got = [loop.run_until_complete(messages.__anext__())]

    def within() -> object:
        return asyncio.run(messages.__anext__())  # type: ignore[arg-type]

    assert "of which this process is a fork" in in_fork(within)
    assert in_fork(messages.close) == "None"
    got += [loop.run_until_complete(messages.__anext__()) for _ in range(9)]
    loop.run_until_complete(theirs.ack(got))
    assert sorted(one.payload for one in got) == list(range(10))
    del messages
    gc.collect()
    assert queue.stats().messages == 0
    loop.close()


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="this system does not list the threads of a process there")
@pytest.mark.parametrize("what", ["offer", "consumer"])
def test_fork_releases_nothing_of_its_parent(what: str, queue: Queue[int]) -> None:
    offer, consumers = queue.native.lease(None, 3), [queue.consumer()]

    def dropped() -> int:
        if what == "offer":
            offer.refuse()
        else:
            consumers.clear()
        return len(os.listdir("/proc/self/task"))

    assert in_fork(dropped) == "1", "no thread was started that could use the connections"
    queue.ack(offer.accept(None) or ())
    assert queue.stats().messages == 7


def test_fork_accepts_no_messages_of_its_parent(queue: Queue[int]) -> None:
    offer = queue.native.lease(None, 3)
    assert "of which this process is a fork" in in_fork(lambda: offer.accept(None))
    queue.ack(offer.accept(None) or ())
    assert queue.stats().messages == 7


class Slow:
    """A codec that takes its time to read a payload."""

    column = "int8"

    def encode(self, payload: int, /) -> bytes:
        return payload.to_bytes(8, "big")

    def decode(self, payload: bytes, /) -> int:
        time.sleep(0.015)
        return int.from_bytes(payload, "big")


@pytest.mark.parametrize("face", ["sync", "async"])
def test_messages_that_take_long_to_decode_lose_no_lease(face: str, url: str, run: Any) -> None:
    db = Db.connect(url)
    db.migrate()
    db.create_queue("numbers", int, lease=1, max_attempts=1)
    queue = db.queue("numbers", Slow())
    queue.enqueue_many(range(100))
    got = list[trunkline.Message[int]]()

    async def story() -> None:
        theirs = await (await trunkline.Db.connect(url)).queue("numbers", Slow())
        async with theirs.consumer() as messages:
            while len(got) < 100:
                got.append(await messages.__anext__())
                await theirs.ack(got[-1])

    if face == "async":
        run(story())
    else:
        with queue.consumer() as messages:
            while len(got) < 100:
                got.append(next(messages))
                queue.ack(got[-1])
    assert sorted(one.payload for one in got) == list(range(100))
    assert {one.attempts for one in got} == {1}, "no attempt was counted"
    assert queue.stats().messages == queue.stats().dead == 0


def test_messages_of_a_late_caller_are_decoded_while_they_last(queue: Queue[int], url: str) -> None:
    db = Db.connect(url)
    db.alter_queue("numbers", lease=4)
    offer = db.queue("numbers", int).native.lease(None, 10)
    leased = time.monotonic()
    while time.monotonic() < leased + 1.6:  # the messages are released after 2 s
        time.sleep(0.01)
    got = offer.accept(queue.codec.decode, True)
    assert got is not None and len(offer.rest(got)) == len(got) == 10
    queue.ack(got)


def test_second_task_cannot_iterate_while_the_first_waits(queue: Queue[int], url: str, run: Any) -> None:
    async def story() -> None:
        queue.purge()
        theirs = await _opened(url)
        async with theirs.consumer() as messages:
            for number in range(2):
                first = asyncio.ensure_future(messages.__anext__())  # type: ignore[arg-type]
                await asyncio.sleep(0)  # the call has begun
                with pytest.raises(RuntimeError, match="create one consumer for each"):
                    await asyncio.wait_for(messages.__anext__(), 10)  # type: ignore[arg-type]
                await theirs.enqueue(number)
                got = await first
                assert got.payload == number
                await theirs.ack(got)
            waiting = asyncio.ensure_future(messages.__anext__())  # type: ignore[arg-type]
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await theirs.enqueue(2)
            await theirs.ack(await messages.__anext__())

    run(story())


def test_task_iterates_at_once_after_it_has_cancelled_another(queue: Queue[int], url: str, run: Any) -> None:
    async def story() -> None:
        queue.purge()
        theirs = await _opened(url)
        async with theirs.consumer() as messages:
            waiting = asyncio.ensure_future(messages.__anext__())  # type: ignore[arg-type]
            await asyncio.sleep(0)  # the call has begun
            waiting.cancel()
            enqueued = asyncio.ensure_future(theirs.enqueue(1))
            got = await messages.__anext__()  # the cancelled task has not run yet
            assert got.payload == 1 and waiting.cancelled()
            await enqueued
            await theirs.ack(got)

    run(story())


def test_tasks_that_take_messages_share_a_consumer(queue: Queue[int], url: str, run: Any) -> None:
    async def story() -> None:
        queue.purge()
        theirs = await _opened(url)
        async with theirs.consumer(guarantee="at most once") as messages:
            tasks = [asyncio.ensure_future(messages.__anext__()) for _ in range(2)]  # type: ignore[arg-type]
            await asyncio.sleep(0)  # the calls have begun
            await theirs.enqueue_many(range(2))
            got = await asyncio.gather(*tasks)
        assert sorted(one.payload for one in got) == [0, 1]
        assert queue.stats().messages == 0

    run(story())


def test_second_thread_cannot_iterate_while_the_first_waits(queue: Queue[int]) -> None:
    queue.purge()
    got = list[int]()
    with queue.consumer() as messages:
        first = threading.Thread(target=lambda: got.append(next(messages).payload))
        first.start()
        limit = time.monotonic() + 20
        while not messages._is_fetching:
            assert time.monotonic() < limit
            time.sleep(0.01)
        with pytest.raises(RuntimeError, match="create one consumer for each"):
            next(messages)
        queue.enqueue(1)
        first.join(20)
    assert got == [1]
