"""Tests what an application declares, what its role may create, and the advice in errors."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
import trunkline

Run = Callable[[Any], Any]
QUEUES = ["bills", "mails", "texts"]


def test_missing_queue_names_the_remedy_in_python(url: str, run: Run) -> None:
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


def test_setups_at_the_same_time_all_succeed_in_an_empty_database(url: str, run: Run) -> None:
    def program() -> trunkline.App:
        app = trunkline.App(url)

        async def send(mail: str) -> None: ...

        for queue in QUEUES:
            app.schedule("@daily", "a", name=queue)(app.task(queue=queue)(send))
        return app

    async def story() -> None:
        await asyncio.gather(*(program().setup() for _ in range(4)))
        db = await program().db()
        assert sorted([schedule.queue for schedule in await db.schedules()]) == QUEUES

    run(story())


@pytest.mark.parametrize("face", ["app", "db"])
def test_queue_that_another_session_creates_is_no_error(face: str, url: str, run: Run) -> None:
    app = trunkline.App(url)

    @app.task()
    async def send(mail: str) -> None: ...

    async def story() -> None:
        db = await app.db()
        await db.migrate()
        with psycopg.connect(url) as theirs, psycopg.connect(url, autocommit=True) as sql:
            theirs.execute("select trunkline.create_queue('send', 'text')")
            made: Any = app.setup() if face == "app" else db.create_queue("send", str)
            made = asyncio.ensure_future(made)
            waiting = "select exists (select from pg_locks where not granted)"
            while not made.done() and sql.execute(waiting).fetchone() != (True,):
                await asyncio.sleep(0.01)
            theirs.commit()
            await made
        assert await send.enqueue("a")

    run(story())


def test_two_schedules_of_one_name_are_refused_at_the_declaration() -> None:
    app = trunkline.App()

    async def send(mail: str) -> None: ...

    nightly = app.schedule("@daily", "a")(app.task(queue="mails")(send))
    with pytest.raises(ValueError, match="a schedule named 'send' already exists, for task 'send' on queue 'mails'"):
        app.schedule("@hourly", "b")(nightly)
    with pytest.raises(ValueError, match="give this schedule another name with name="):
        app.schedule("@hourly", "b")(app.task(queue="texts")(send))
    app.schedule("@hourly", "b", name="hourly")(nightly)
    assert [schedule.name for schedule, _ in nightly.schedules] == ["send", "hourly"]
    with pytest.raises(TypeError, match="a schedule decorates a task"):
        app.schedule("@daily")(send)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no setting max_atempts"):
        app.task(queue="typo", max_atempts=3)(send)
    with pytest.raises(ValueError, match="a queue cannot be named 'sendMail'"):
        app.task(queue="sendMail")(send)
    with pytest.raises(trunkline.BadPayload):
        app.schedule("@daily", 5, name="number")(nightly)  # type: ignore[arg-type]


def test_undeclared_schedule_is_said_and_dropped_when_asked(
    url: str, run: Run, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        listed = await db.schedules()
        await program("kept").setup(drop_schedules=True)

        async def what_another_worker_listed_before(_: object) -> Any:
            return listed

        with monkeypatch.context() as patched:
            patched.setattr(trunkline.Db, "schedules", what_another_worker_listed_before)
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
                assert "schedule 'send' of queue 'mails' cannot be stored, because the role lacks the right" in caplog.text
                with pytest.raises(trunkline.TrunklineError, match="operator of all queues: `select trunkline.grant_rights\\('ROLE', 'operator'\\)`"):
                    await app.setup(queues=["mails"])
                with pytest.raises(trunkline.TrunklineError, match="'missing' does not exist and cannot be created.*as the role that owns the schema"):
                    await app.setup(queues=["missing"])
            finally:
                app.close()
                sql.execute("drop owned by a_consumer_of_mails cascade")
                sql.execute("drop role a_consumer_of_mails")

    with caplog.at_level(logging.WARNING, "trunkline.worker"):
        run(story())


def test_advice_of_errors_can_be_followed_in_python(url: str, run: Run) -> None:
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


def test_error_for_a_changed_schema_names_its_remedy_in_python(url: str, run: Run) -> None:
    from opened import opened

    async def story() -> None:
        db, mails = await opened(url, str)
        await mails.schedule(trunkline.Schedule("daily", "0 3 * * *"), "a")
        with psycopg.connect(url, autocommit=True) as sql:
            sql.execute("alter table trunkline.schedule drop constraint schedule_missed")
            sql.execute("update trunkline.schedule set missed = 'else'")
        with pytest.raises(trunkline.TrunklineError, match="check that Db.migrate or App.setup created this schema$") as changed:
            await db.schedules()
        assert "::" not in str(changed.value) and "`trunkline " not in str(changed.value)

    run(story())


def test_a_task_knows_the_settings_that_a_queue_has(url: str, run: Run) -> None:
    from trunkline.settings import NAMES

    async def story() -> None:
        db = await trunkline.Db.connect(url)
        with pytest.raises(TypeError) as refused:
            await db.create_queue("mails", str, nothing=1)
        assert set(str(refused.value).partition(": ")[2].split(", ")) == NAMES

    run(story())
