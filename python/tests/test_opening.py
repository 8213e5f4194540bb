"""An application opens its database and its queues once, whoever asks, and sets up as far as its role may."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
import trunkline
from trunkline import sync, transaction

Run = Callable[[Any], Any]


@pytest.fixture
def app(url: str) -> trunkline.App:
    app = trunkline.App(url)

    @app.task(queue="numbers")
    async def count(number: int) -> None: ...

    asyncio.run(app.setup())
    app.close()
    return app


@pytest.fixture
def task(app: trunkline.App) -> trunkline.Task[int]:
    return app.tasks["numbers"]


class Connects:
    """Counts connects of the package, and lets them fail or wait."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.fails = False
        self.may_go = threading.Event()
        self.may_go.set()
        real = sync.Db.connect

        def connect(url: str = "") -> sync.Db:
            self.count += 1
            assert self.may_go.wait(30)
            if self.fails:
                raise OSError("no network")
            return real(url)

        monkeypatch.setattr(sync.Db, "connect", staticmethod(connect))


@pytest.fixture
def connects(app: trunkline.App, monkeypatch: pytest.MonkeyPatch) -> Connects:
    return Connects(monkeypatch)


def test_first_calls_at_once_connect_and_open_once(task: trunkline.Task[int], connects: Connects, run: Run) -> None:
    async def story() -> None:
        ids = await asyncio.gather(*(task.enqueue(n) for n in range(1000)))
        assert len(set(ids)) == 1000 and connects.count == 1
        queues = await asyncio.gather(*(task.app.queue(task) for _ in range(100)))
        assert len({id(queue) for queue in queues}) == 1

    run(story())


def test_first_calls_of_threads_and_loops_connect_once(task: trunkline.Task[int], connects: Connects) -> None:
    connects.may_go.clear()

    def call(n: int) -> int:
        return task.app.queue_sync(task).enqueue(n) if n % 2 else asyncio.run(task.enqueue(n))

    with ThreadPoolExecutor(16) as threads:
        ids = threads.map(call, range(16))
        connects.may_go.set()
        assert len(set(ids)) == 16
    assert connects.count == 1


def test_a_first_call_that_is_cancelled_cancels_no_other(task: trunkline.Task[int], connects: Connects, run: Run) -> None:
    async def story() -> None:
        connects.may_go.clear()
        first, *others = [asyncio.ensure_future(task.enqueue(n)) for n in range(10)]
        while not connects.count:
            await asyncio.sleep(0)
        first.cancel()
        connects.may_go.set()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert len(set(await asyncio.gather(*others))) == 9 and connects.count == 1

    run(story())


def test_a_loop_that_ends_while_it_opens_leaves_the_next_one_whole(task: trunkline.Task[int], connects: Connects) -> None:
    connects.may_go.clear()

    async def gives_up() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(task.enqueue(1), 0.05)

    asyncio.run(gives_up())
    connects.may_go.set()
    assert asyncio.run(task.enqueue(2)) and connects.count == 1


def test_a_failed_opening_is_not_kept(task: trunkline.Task[int], connects: Connects, run: Run) -> None:
    async def story() -> None:
        connects.fails = True
        connects.may_go.clear()
        calls = [asyncio.ensure_future(task.enqueue(n)) for n in range(50)]
        while not connects.count:
            await asyncio.sleep(0)  # each has begun then
        connects.may_go.set()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(one, OSError) for one in outcomes) and connects.count == 1
        connects.fails = False
        assert await task.enqueue(1)

    run(story())


def test_many_first_calls_cost_about_what_later_ones_do(task: trunkline.Task[int], run: Run) -> None:
    async def story() -> None:
        async def took() -> float:
            began = time.perf_counter()
            await asyncio.gather(*(task.enqueue(n) for n in range(20_000)))
            return time.perf_counter() - began

        first, later = await took(), min([await took(), await took()])
        assert first < 4 * later + 1, (first, later)  # it was sixty times

    run(story())


def test_a_child_of_a_fork_opens_for_itself(task: trunkline.Task[int], run: Run) -> None:
    assert run(task.enqueue(1))
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if task.app.queue_sync(task).enqueue(2) else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert run(task.enqueue(3))


def test_another_address_holds_from_the_next_use_on(task: trunkline.Task[int], run: Run) -> None:
    """As in the tests of a program, where each has a database of its own."""
    from trunkline.testing import database

    assert run(task.enqueue(1))
    task.app.url = database()
    run(task.app.setup())
    assert run(task.enqueue(2))
    assert task.app.queue_sync(task).stats().messages == 1


def test_a_queue_that_is_not_there_names_the_remedy_in_python(url: str, run: Run) -> None:
    app = trunkline.App(url)

    @app.task()
    async def send(mail: str) -> None: ...

    async def story() -> None:
        with pytest.raises(trunkline.TrunklineError, match="App.setup") as none:
            await send.enqueue("a")
        assert "trunkline migrate" not in str(none.value)
        db = await app.db()
        await db.migrate()
        with pytest.raises(trunkline.NoQueue, match="no queue 'send' in the database: `await app.setup\\(\\)` creates it"):
            await send.enqueue("a")
        with pytest.raises(trunkline.NoQueue, match="Db.create_queue, or App.setup") as none:
            await db.queue("send", str)
        assert "::" not in str(none.value) and "`trunkline " not in str(none.value)
        await app.setup()
        assert await send.enqueue("a")

    run(story())


def test_two_schedules_of_one_name_are_refused_at_the_declaration() -> None:
    app = trunkline.App()

    async def send(mail: str) -> None: ...

    nightly = app.schedule("@daily", "a")(app.task(queue="mails")(send))
    with pytest.raises(ValueError, match="a schedule is named 'send' already, of task 'send' on queue 'mails'"):
        app.schedule("@hourly", "b")(nightly)
    with pytest.raises(ValueError, match="give this one another with name="):
        app.schedule("@hourly", "b")(app.task(queue="texts")(send))
    app.schedule("@hourly", "b", name="hourly")(nightly)
    assert [schedule.name for schedule, _ in nightly.schedules] == ["send", "hourly"]
    with pytest.raises(TypeError, match="a schedule stands above the task"):
        app.schedule("@daily")(send)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no setting max_atempts"):
        app.task(queue="typo", max_atempts=3)(send)
    with pytest.raises(ValueError, match="a queue cannot be named 'sendMail'"):
        app.task(queue="sendMail")(send)
    with pytest.raises(trunkline.BadPayload):
        app.schedule("@daily", 5, name="number")(nightly)  # type: ignore[arg-type]


def test_a_schedule_that_no_task_declares_is_said_and_dropped_when_asked(url: str, run: Run, caplog: pytest.LogCaptureFixture) -> None:
    def program(*names: str) -> trunkline.App:
        app = trunkline.App(url)

        @app.task(queue="mails")
        async def send(mail: str) -> None: ...

        for name in names:
            app.schedule("@daily", "a", name=name)(send)
        return app

    async def story() -> None:
        await program("old", "kept").setup()
        db = await program().db()
        await db.create_queue("others", str)
        await (await db.queue("others", str)).schedule(trunkline.Schedule("foreign", "@daily"), "a")
        await program("kept").setup()
        assert "schedule 'old' enqueues into 'mails'" in caplog.text and "kept" not in caplog.text and "foreign" not in caplog.text
        await program("kept").setup(drop_schedules=True)
        assert [one.name for one in await db.schedules()] == ["foreign", "kept"]

    with caplog.at_level(logging.WARNING, "trunkline.worker"):
        run(story())


def test_a_worker_of_a_consumer_works_without_the_owners_rights(url: str, run: Run, caplog: pytest.LogCaptureFixture) -> None:
    app, done = trunkline.App(url), list[str]()

    @app.schedule("@daily", "a")
    @app.task(queue="mails")
    async def send(mail: str) -> None:
        done.append(mail)

    @app.task(queue="missing")
    async def other(mail: str) -> None: ...

    async def story() -> None:
        await app.setup(queues=["mails"])
        with psycopg.connect(url, autocommit=True) as sql:
            sql.execute("create role a_consumer_of_mails login")
            sql.execute("select trunkline.grant_rights('a_consumer_of_mails', 'consumer', 'mails')")
            try:
                await send.enqueue("ada")
                app.url = f"{url} user=a_consumer_of_mails"
                await app.setup(queues=["mails"], as_permitted=True)
                assert (await app.drain(queues=["mails"])).done == 1 and done == ["ada"]
                assert "schedule 'send' of queue 'mails' cannot be put in force, because the role may not" in caplog.text
                with pytest.raises(trunkline.TrunklineError, match="operator of all queues: `select trunkline.grant_rights\\('ROLE', 'operator'\\)`"):
                    await app.setup(queues=["mails"])
                with pytest.raises(trunkline.TrunklineError, match="'missing' is not there and cannot be created.*as the role that owns the schema"):
                    await app.setup(queues=["missing"])
            finally:
                app.close()
                sql.execute("drop owned by a_consumer_of_mails cascade")
                sql.execute("drop role a_consumer_of_mails")

    with caplog.at_level(logging.WARNING, "trunkline.worker"):
        run(story())


def test_texts_for_people_are_kept_and_texts_that_mean_something_are_refused(url: str, run: Run) -> None:
    from opened import opened

    async def story() -> None:
        _, mails = await opened(url, str)
        await mails.enqueue_many(["a", "b"])
        first, second = await mails.lease(2)
        await mails.bury(first, "caf\udce9\0!")
        await mails.retry(second, 0, "caf\udce9")
        assert [letter.error for letter in await mails.dead_letters()] == ["caf?\ufffd!"]
        assert [one.error for one in await mails.peek(1)] == ["caf?"]
        for draft in (mails.draft("x").metadata({"a": "\udce9"}), mails.draft("x").metadata({"\0": "a"}), mails.draft("x").key("\udce9")):
            with pytest.raises(trunkline.BadPayload):
                await mails.enqueue(draft)

    run(story())


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_a_message_whose_failure_has_no_text_does_not_hide_its_neighbours(url: str, run: Run) -> None:
    from opened import opened

    class Picky:
        column = "text"

        def encode(self, payload: str, /) -> bytes:
            return payload.encode()

        def decode(self, payload: bytes, /) -> str:
            if payload == b"bad":
                raise Mute
            return payload.decode()

    async def story() -> None:
        from trunkline.testing import assert_enqueued, assert_not_enqueued

        _, mails = await opened(url, Picky())
        await mails.enqueue_many(["good", "bad"])
        good, bad = await mails.peek(2)
        assert (good.payload, bad.payload) == ("good", None) and bad.problem and "Mute" in bad.problem
        with pytest.raises(AssertionError, match="cannot be read"):
            await assert_not_enqueued(mails, "other")
        with pytest.raises(AssertionError):
            await assert_enqueued(mails, None)  # type: ignore[arg-type]
        with psycopg.connect(url) as sql:
            (leased,) = transaction.queue(sql, mails).lease(2)
            assert leased.payload == "good"

    run(story())


def test_a_transaction_uses_the_schema_of_the_queue(url: str, run: Run) -> None:
    app = trunkline.App(f"{url} schema=other")

    @app.task(queue="mails")
    async def send(mail: str) -> None: ...

    with psycopg.connect(url) as sql:
        before = transaction.queue(sql, send)._schema  # pyright: ignore[reportPrivateUsage]  # not connected to yet
        run(app.setup())
        transaction.queue(sql, send).enqueue("a")
        transaction.queue(sql, app.queue_sync(send)).enqueue("b")
        sql.commit()
        assert before == '"other"' and app.queue_sync(send).stats().messages == 2


def test_what_an_error_advises_can_be_done_in_python(url: str, run: Run) -> None:
    from opened import opened

    async def story() -> None:
        db, mails = await opened(url, str)
        calls = [
            mails.enqueue(mails.draft("a").priority(5)), mails.enqueue(mails.draft("a").key("k")), mails.enqueue(mails.draft("a").unique("k")),
            db.create_queue("mails", str, max_attempts=3), db.create_queue("mails", int), db.queue("none", str), db.describe_queue("none"),
            db.drop_schedule("none"), db.queue("mails", int), db.limit_queue("none"),
        ]  # fmt: skip
        errors = [str(error) for error in await asyncio.gather(*calls, return_exceptions=True)]
        with psycopg.connect(url, autocommit=True) as sql:
            sql.execute("create role without_rights_here login")
            try:
                stranger = await trunkline.Db.connect(f"{url} user=without_rights_here")
                refused = await asyncio.gather(stranger.create_queue("b", str), stranger.queue("mails", str), stranger.schedules(), return_exceptions=True)
                errors += [str(error) for error in refused]
            finally:
                sql.execute("drop role without_rights_here")
        assert all("::" not in text and "`trunkline " not in text and "trunkline.alter_queue" not in text for text in errors), errors
        assert "Db.alter_queue" in errors[3]

    run(story())


def test_a_task_knows_the_settings_that_a_queue_has(url: str, run: Run) -> None:
    from trunkline.settings import NAMES

    async def story() -> None:
        db = await trunkline.Db.connect(url)
        with pytest.raises(TypeError) as refused:
            await db.create_queue("mails", str, nothing=1)
        assert set(str(refused.value).partition(": ")[2].split(", ")) == NAMES

    run(story())
