"""Tests the verbs for asyncio."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from datetime import datetime, timedelta, timezone
from typing import Any, Literal

import psycopg
import pytest
import trunkline
from trunkline.sync import Db
from trunkline.testing import shift

from opened import opened


def test_message_is_leased_and_is_gone_when_acknowledged(url: str, run: Any) -> None:
    async def story() -> None:
        _, mails = await opened(url)
        id = await mails.enqueue({"to": "ada"})
        (mail,) = await mails.lease(10)
        assert (mail.id, mail.attempt, mail.attempts, mail.payload, mail.metadata, mail.key) == (id, 1, 1, {"to": "ada"}, {}, None)
        assert abs(datetime.now(timezone.utc) - mail.enqueued_at) < timedelta(minutes=1)
        assert (await mails.stats()).leased == 1
        await mails.ack(mail)
        assert (await mails.stats()).messages == 0
        with pytest.raises(trunkline.LeaseLost) as lost:
            await mails.ack(mail)
        assert lost.value.is_lease_lost and lost.value.lost_ids == [id]

    run(story())


def test_concurrent_calls_share_rows_and_each_gets_its_own_id(url: str, run: Any) -> None:
    async def story() -> None:
        _, mails = await opened(url, int)
        ids = await asyncio.gather(*(mails.enqueue(number) for number in range(1_000)))
        assert len(set(ids)) == 1_000
        assert (await mails.stats()).rows < 100
        found = await mails.take(1_000)
        assert {mail.id: mail.payload for mail in found} == dict(zip(ids, range(1_000)))

    run(story())


def test_a_draft_says_when_with_what_and_under_which_key(url: str, run: Any) -> None:
    async def story() -> None:
        _, mails = await opened(url, str, uniqueness=True, priorities=3)
        base = mails.draft("a").metadata({"tenant": "acme"})
        later = await base.after(minutes=5).enqueue()
        at = datetime.now(timezone.utc) + timedelta(hours=1)
        timed = await base.at(at).metadata({"more": "1"}).priority(2).enqueue()
        first = await base.unique("k", ttl=60).enqueue()
        again = await base.unique("k").enqueue()
        assert (first.is_new, again.outcome, again.id) == (True, "duplicate", first.id)
        peeked = {one.id: one for one in await mails.peek(10)}
        assert peeked[timed].metadata == {"tenant": "acme", "more": "1"} and peeked[timed].priority == 2
        assert abs(peeked[timed].due_at - at) < timedelta(seconds=1) and peeked[later].state == "delayed"
        assert [mail.payload for mail in await mails.take(10)] == ["a"]
        await shift(mails, timedelta(hours=2))
        assert len(await mails.take(10)) == 2

    run(story())


def test_draft_sets_columns_of_the_table(url: str, run: Any) -> None:
    async def story() -> None:
        _, mails = await opened(url, str)
        with psycopg.connect(url, autocommit=True) as sql:
            sql.execute("alter table trunkline.queue_mails add column tenant text default 'none', add column tags text[]")
            draft = mails.draft("a").columns({"tenant": "acme"}).columns({"tags": "{x,y}"})
            ids = await mails.enqueue_many(["b", draft, draft])
            assert sql.execute("select id, size, tenant, tags from trunkline.queue_mails order by id").fetchall() == [
                (ids[0], 1, "none", None),
                (ids[1], 2, "acme", ["x", "y"]),
            ]
        with pytest.raises(trunkline.TrunklineError, match="no column tenent that accepts values"):
            await mails.draft("a").columns({"tenent": "acme"}).enqueue()
        with pytest.raises(TypeError, match="column value for 'tenant' must be a str"):
            await mails.draft("a").columns({"tenant": 7}).enqueue()  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]

    run(story())


@pytest.mark.parametrize("outcome", ["new", "duplicate", "replaced"])
def test_enqueued_works_as_the_id(outcome: Literal["new", "duplicate", "replaced"]) -> None:
    one = trunkline.Enqueued.of(7, outcome)
    assert (one, hash(one), {one: 1}[7], one + 1, json.dumps([one])) == (7, hash(7), 1, 8, "[7]")
    assert (str(one), f"{one} {one:03}", "%d" % one, repr(one)) == ("7", "7 007", "7", f"Enqueued(id=7, outcome='{outcome}')")
    assert (type(one.id), one.id, one.outcome, one.is_new) == (int, 7, outcome, outcome == "new")
    for made in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert isinstance(made, trunkline.Enqueued) and (made, made.outcome) == (7, outcome)


def test_every_enqueue_returns_its_outcome(url: str, run: Any) -> None:
    app = trunkline.App(url)

    @app.task(uniqueness=True)
    async def report(name: str) -> None: ...

    async def story() -> None:
        await app.setup()
        queue, waiting = await app.queue(report), Db.connect(url).queue("report", str)
        draft = report.draft("a").unique("k")
        sent = [await report.enqueue("b"), await draft, await draft.enqueue(), await queue.enqueue(draft), waiting.enqueue(draft)]
        assert all(isinstance(one, trunkline.Enqueued) for one in sent)
        assert [one.outcome for one in sent] == ["new", "new"] + ["duplicate"] * 3 and set(sent[1:]) == {sent[1]}
        for many in (report.enqueue_many, queue.enqueue_many):
            both = await many(["c", report.draft("d").unique("k", replaces=True)])
            assert [one.outcome for one in both] == ["new", "replaced"] and both[1] == sent[1]
        assert [one.outcome for one in waiting.enqueue_many(["e", draft])] == ["new", "duplicate"]
        assert (await queue.find(sent[1])).payload == "d"
        assert await queue.cancel(sent[:2]) == sent[:2]

    run(story())


def test_failed_message_dies_after_last_attempt_and_is_replayed(url: str, run: Any) -> None:
    async def story() -> None:
        _, mails = await opened(url, str, max_attempts=2)
        id = await mails.enqueue("a")
        for _ in range(2):
            await mails.retry(await mails.lease(1), after=0, error="no route")
        (letter,) = await mails.dead_letters()
        assert (letter.id, letter.error, letter.payload, letter.attempt) == (id, "no route", "a", 2)
        assert await mails.replay(id) == 1
        (mail,) = await mails.lease(1)
        await mails.bury(mail, "hopeless")
        assert (await mails.find(id)).state == "dead"
        assert await mails.discard("all") == 1 and await mails.find(id) is None

    run(story())


def test_messages_are_found_cancelled_and_rescheduled_by_their_ids(url: str, run: Any) -> None:
    async def story() -> None:
        _, mails = await opened(url, str)
        ids = await mails.enqueue_many(["a", "b", "c"])
        assert await mails.reschedule(ids[0], 60) == [ids[0]]
        assert (await mails.find(ids[0])).state == "delayed"
        assert await mails.cancel(ids[1:]) == ids[1:]
        assert await mails.reschedule(ids[0], timedelta(0)) == [ids[0]]
        (mail,) = await mails.lease(10)
        await mails.extend(mail, timedelta(minutes=5))
        await mails.archive(mail)
        (kept,) = await mails.archived()
        assert kept.payload == "a" and await mails.prune(0) == 1

    run(story())


def test_a_consumer_waits_and_gives_back_what_nobody_iterated_to(url: str, run: Any) -> None:
    async def story() -> None:
        _, mails = await opened(url, int)
        consumer = mails.consumer()
        assert await consumer.lease(1, within=0.01) == []
        waiting = asyncio.ensure_future(consumer.take(10))
        await mails.enqueue(7)
        assert [mail.payload for mail in await waiting] == [7]
        await mails.enqueue_many(range(10))
        async with mails.consumer(prefetch=5) as messages:
            async for message in messages:
                await mails.ack(message)
                break
        await _until(mails, due=9)

    run(story())


async def _until(mails: trunkline.Queue[Any], due: int) -> None:
    while (await mails.stats()).due != due:
        await asyncio.sleep(0.01)


def test_queues_are_described_altered_paused_limited_and_dropped(url: str, run: Any) -> None:
    async def story() -> None:
        db, mails = await opened(url, bytes, lease=timedelta(minutes=2), max_attempts=3)
        told = await db.describe_queue("mails")
        assert (told.payload, told.lease, told.max_attempts) == ("bytea", timedelta(minutes=2), 3)
        await db.alter_queue("mails", max_attempts=4)
        await db.pause_queue("mails")
        await mails.enqueue(b"a")
        assert await mails.take(1) == []
        await db.resume_queue("mails")
        await db.limit_queue("mails", max_leased=1)
        assert [one.max_attempts for one in await db.list_queues()] == [4]
        assert len(await mails.lease(5)) == 1 and await mails.purge() == 1
        await db.drop_queue("mails")
        with pytest.raises(trunkline.NoQueue):
            await mails.enqueue(b"a")
        with pytest.raises(TypeError, match="no setting .colour."):
            await db.create_queue("x", colour=1)

    run(story())


def test_a_schedule_fires_and_is_listed(url: str, run: Any) -> None:
    async def story() -> None:
        db, mails = await opened(url, str)
        nightly = trunkline.Schedule("nightly", "0 3 * * *", zone="Europe/Berlin", metadata={"by": "test"})
        assert await mails.schedule(nightly, "all") and not await mails.schedule(nightly, "all")
        await db.fire_schedule("nightly")
        (mail,) = await mails.take(1)
        assert mail.payload == "all" and mail.metadata["schedule"] == "nightly"
        await db.pause_schedule("nightly")
        (told,) = await db.schedules()
        assert told.is_paused and told.zone == "Europe/Berlin"
        await db.drop_schedule("nightly")
        with pytest.raises(trunkline.TrunklineError, match="never ticks|valid|expression|field"):
            await mails.schedule(trunkline.Schedule("never", "no cron"), "x")

    run(story())


def test_errors_say_what_they_are(url: str, run: Any) -> None:
    async def story() -> None:
        db, _ = await opened(url, str)
        with pytest.raises(trunkline.NoQueue) as none:
            await db.queue("nothing")
        assert none.value.is_no_queue and not none.value.is_outcome_unknown
        with pytest.raises(trunkline.WrongType) as wrong:
            await db.queue("mails", int)
        await db.create_queue("numbers", int)
        with pytest.raises(trunkline.WrongType):
            await db.queue("numbers", str)
        assert wrong.value.is_wrong_type
        with pytest.raises(trunkline.Disconnected) as closed:
            await trunkline.Db.connect("host=127.0.0.1 port=1 dbname=x user=x")
        assert closed.value.is_closed and closed.value.sqlstate is None
        with pytest.raises(ValueError, match="out of bounds"):
            await (await db.queue("mails", str)).draft("a").after(-1).enqueue()
        with psycopg.connect(url, autocommit=True) as sql:
            sql.execute("alter table trunkline.queue_mails add constraint drained check (false)")  # as a drain does
        with pytest.raises(trunkline.TrunklineError) as drained:
            await (await db.queue("mails", str)).enqueue("a")
        assert drained.value.is_drained and not drained.value.is_bad_payload and not none.value.is_drained

    run(story())


@pytest.mark.parametrize("at", [datetime(1900, 1, 1), datetime.min, datetime.min.replace(tzinfo=timezone.utc), datetime(1969, 12, 31, tzinfo=timezone.utc)])
def test_a_time_that_passed_long_ago_is_at_once(at: datetime, url: str, run: Any) -> None:
    async def story() -> None:
        _, queue = await opened(url, int)
        await queue.draft(1).at(at).enqueue()
        later = await queue.draft(2).after(hours=1).enqueue()
        assert await queue.reschedule(later, at) == [later]
        assert sorted(message.payload for message in await queue.take(5)) == [1, 2]

    run(story())
