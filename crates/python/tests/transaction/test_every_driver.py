"""Tests the verbs on every driver's connection."""

from __future__ import annotations

import asyncio
import enum
from datetime import datetime, timedelta, timezone
from typing import Any

import psycopg
import pytest
import trunkline

from .conftest import Mail

ADA = {"to": "ada@example.org", "text": 'a "quoted" \\ ü %s :name {brace} ?'}


class Broke(Exception):
    """An error of the user's program in the middle of its transaction."""


def waiting(sql: Any) -> int:
    count: int = sql("select due + delayed from trunkline.stats('mails')")[0]
    return count


def test_a_message_shows_at_the_commit_and_not_before(door, sql, queue_on):
    async def scenario():
        async with door.begin() as connection:
            await door.effect(connection)
            id = await queue_on(connection).draft(ADA).metadata({"tenant": "acme"}).enqueue()
            assert waiting(sql) == 0
        assert sql("select id, payload::jsonb, metadata from trunkline.messages('mails')") == [(id, ADA, {"tenant": "acme"})]
        assert sql("select count(*) from effects") == [1]

    asyncio.run(scenario())


def test_a_rollback_hides_a_message_for_ever(door, sql, queue_on):
    async def scenario():
        with pytest.raises(Broke):
            async with door.begin() as connection:
                await door.effect(connection)
                await queue_on(connection).enqueue(ADA)
                await queue_on(connection).enqueue_many([ADA, ADA])
                raise Broke
        assert waiting(sql) == 0
        assert sql("select count(*) from effects") == [0]

    asyncio.run(scenario())


def test_columns_of_the_table_get_values(door, url, sql, queue_on):
    async def scenario():
        with psycopg.connect(url) as connection:
            connection.execute("alter table trunkline.queue_mails add column tenant text default 'none'")
        async with door.begin() as connection:
            mails = queue_on(connection)
            one = await mails.draft(ADA).columns({"tenant": 'a "b" \\ ü'}).enqueue()
            many = await mails.enqueue_many([ADA, *[mails.draft(ADA).columns({"tenant": "acme"})] * 2])
            with pytest.raises(ValueError, match="unique key"):
                await mails.draft(ADA).columns({"tenant": "acme"}).unique("k").enqueue()
            for refused in (mails.draft(ADA).key("a").unique("k"), mails.draft(ADA).key("a")):
                with pytest.raises(ValueError, match="cannot have a key"):
                    await mails.enqueue_many([refused, mails.draft(ADA).unique("l")])
        assert sorted(sql("select id, size, tenant from trunkline.queue_mails")) == [
            (one, 1, 'a "b" \\ ü'),
            (many[0], 1, "none"),
            (many[1], 2, "acme"),
        ]

    asyncio.run(scenario())


def test_many_messages_are_one_row_with_ids_in_order(door, sql, queue_on):
    async def scenario():
        payloads = [{"n": n} for n in range(100)]
        async with door.begin() as connection:
            mails = queue_on(connection)
            ids = await mails.enqueue_many([mails.draft(payloads[0]).metadata({"n": "0"}), *payloads[1:]])
            assert await queue_on(connection).enqueue_many([]) == []
        assert ids == list(range(ids[0], ids[0] + 100))
        assert sql("select rows from trunkline.stats('mails')") == [1]
        assert sql("select (payload::jsonb ->> 'n')::int from trunkline.messages('mails')") == list(range(100))
        assert sql("select id from trunkline.messages('mails') where metadata is not null") == ids[:1]

    asyncio.run(scenario())


def test_message_is_due_after_delay_or_at_time(door, sql, queue_on):
    async def scenario():
        noon = datetime(2100, 1, 1, 12, tzinfo=timezone.utc)
        async with door.begin() as connection:
            mails = queue_on(connection)
            ids = [await mails.draft(ADA).after(hours=1).enqueue(), await mails.draft(ADA).after(90.25).enqueue()]
            ids.append(await mails.draft(ADA).at(noon).enqueue())
            ids.append(await mails.draft(ADA).at(datetime(2000, 1, 1)).enqueue())
        late = [sql("select extract(epoch from due_at - enqueued_at)::float8 from trunkline.find('mails', %s)", id)[0] for id in ids]
        assert late[0] == pytest.approx(3600, abs=10)
        assert late[1] == pytest.approx(90, abs=10)
        assert late[3] == pytest.approx(0, abs=10)
        # Due no earlier than `noon`, and later by at most the duration of the call, because the
        # functions count from their own time.
        assert sql("select due_at - %s between interval '-1 ms' and interval '1 s' from trunkline.find('mails', %s)", noon, ids[2]) == [True]

    asyncio.run(scenario())


def test_mixed_drafts_go_together_and_ids_keep_order(door, sql, queue_on):
    async def scenario():
        async with door.begin() as connection:
            mails = queue_on(connection)
            ids = await mails.enqueue_many([{"n": 0}, mails.draft({"n": 1}).after(hours=1), {"n": 2}, mails.draft({"n": 3}).after(hours=1)])
        assert [sql("select payload::jsonb from trunkline.find('mails', %s)", id)[0] for id in ids] == [{"n": n} for n in range(4)]
        assert sql("select due, delayed, rows from trunkline.stats('mails')") == [(2, 2, 2)]

    asyncio.run(scenario())


def test_priority_key_and_unique_key_are_kept(door, sql, queue_on):
    sql("select trunkline.create_queue('ranked', 'jsonb', priorities => 3)")
    sql("select trunkline.create_queue('orders', 'jsonb', partitions => 4)")
    sql("select trunkline.create_queue('reports', 'jsonb', uniqueness => true)")

    async def scenario():
        async with door.begin() as connection:
            await queue_on(connection, "ranked").draft(ADA).priority(2).enqueue()
            orders = queue_on(connection, "orders")
            await orders.draft(ADA).key("ada").enqueue()
            await orders.enqueue_many([orders.draft(ADA).key("bob"), orders.draft(ADA).key('c"\\')])
            reports = queue_on(connection, "reports")
            first = await reports.draft(ADA).unique("acme", timedelta(hours=1)).enqueue()
            again = await reports.draft(ADA).unique("acme").enqueue()
            assert (first.outcome, again.outcome, again.id) == ("new", "duplicate", first.id)
            second = await reports.draft({"to": "bob"}).unique("acme", replaces=True).enqueue()
            assert (second.id, second.outcome) == (first.id, "replaced")
            many = await reports.enqueue_many([reports.draft(ADA).unique("acme"), ADA])
            assert many[0] == first and [one.is_new for one in many] == [False, True]
        assert sql("select priority from trunkline.messages('ranked')") == [2]
        assert sorted(sql("select key from trunkline.messages('orders')")) == ["ada", "bob", 'c"\\']

    asyncio.run(scenario())


def test_mixed_drafts_keep_the_order_of_their_keys(door, sql, url, queue_on):
    sql("select trunkline.create_queue('orders', 'jsonb', partitions => 4)")
    with psycopg.connect(url) as connection:
        connection.execute("alter table trunkline.queue_orders add column tenant text default 'none'")
    sql("select trunkline.create_queue('reports', 'jsonb', uniqueness => true)")
    minute, hour = timedelta(minutes=1), timedelta(hours=1)

    async def scenario():
        async with door.begin() as connection:
            reports = queue_on(connection, "reports")
            keys = [("j", minute), ("k", hour), ("k", minute), ("a", minute)]
            many = await reports.enqueue_many([reports.draft({"n": n}).unique(key, ttl) for n, (key, ttl) in enumerate(keys)])
            assert [one.outcome for one in many] == ["new", "new", "duplicate", "new"]
            assert many[2].id == many[1].id
            orders = queue_on(connection, "orders")
            drafts = [orders.draft({"n": n}).key("ada") for n in range(3)]
            ids = await orders.enqueue_many([drafts[0], drafts[1].columns({"tenant": "acme"}), drafts[2].after(seconds=0)])
            assert ids == sorted(ids)
        found = "select (payload::jsonb ->> 'n')::int from trunkline.messages('orders') order by due_at, id"
        assert sql(found) == [0, 1, 2]
        assert sql("select (payload::jsonb ->> 'n')::int from trunkline.find('reports', %s)", many[1].id) == [1]

    asyncio.run(scenario())


def test_an_acknowledgement_and_its_effect_commit_together(door, sql, queue_on):
    async def scenario():
        sql("select trunkline.enqueue('mails', '{}')")
        async with door.begin() as connection:
            (message,) = await queue_on(connection).lease(1)
        with pytest.raises(Broke):
            async with door.begin() as connection:
                await door.effect(connection)
                await queue_on(connection).ack(message)
                raise Broke
        assert sql("select leased from trunkline.stats('mails')") == [1]
        assert sql("select count(*) from effects") == [0]
        async with door.begin() as connection:
            await door.effect(connection)
            await queue_on(connection).ack([message])
        assert sql("select leased + due from trunkline.stats('mails')") == [0]
        assert sql("select count(*) from effects") == [1]

    asyncio.run(scenario())


def test_lost_lease_is_its_own_error_and_commits_nothing(door, sql, queue_on):
    async def scenario():
        sql("select trunkline.enqueue('mails', '{}')")
        async with door.begin() as connection:
            (late,) = await queue_on(connection).lease(1, timedelta(minutes=1))
        sql("select trunkline.shift('mails', '2 minutes')")
        async with door.begin() as connection:
            (message,) = await queue_on(connection).lease(1)
        assert (message.id, message.attempt) == (late.id, late.attempt + 1)
        for verb, more in {"ack": [], "archive": [], "retry": [60, "busy"], "bury": ["hopeless"], "release": [], "extend": [60]}.items():
            with pytest.raises(trunkline.LeaseLost) as lost:
                async with door.begin() as connection:
                    await door.effect(connection)
                    await getattr(queue_on(connection), verb)(late, *more)
            assert lost.value.is_lease_lost and lost.value.sqlstate == "TL001" and lost.value.__cause__ is not None
            assert "the lease of message" in str(lost.value)
        assert sql("select count(*) from effects") == [0]
        assert sql("select leased from trunkline.stats('mails')") == [1]

    asyncio.run(scenario())


def test_taken_message_survives_rollback_and_its_attempts_count(door, sql, queue_on):
    async def scenario():
        sql("select trunkline.enqueue('mails', '{\"n\": 1}', metadata => '{\"tenant\": \"acme\"}')")
        for _ in range(3):
            with pytest.raises(Broke):
                async with door.begin() as connection:
                    (message,) = await queue_on(connection).take()
                    assert (message.payload, message.metadata) == ({"n": 1}, {"tenant": "acme"})
                    assert abs(datetime.now(timezone.utc) - message.enqueued_at) < timedelta(minutes=1)
                    raise Broke
            async with door.begin() as connection:
                await queue_on(connection).charge(message, 0, "no such host")
        assert sql("select due, dead from trunkline.stats('mails')") == [(0, 1)]

    asyncio.run(scenario())


def test_the_other_ends_of_a_lease(door, sql, queue_on):
    async def scenario():
        async with door.begin() as connection:
            await queue_on(connection).enqueue_many([{"n": n} for n in range(5)])
        async with door.begin() as connection:
            mails = queue_on(connection)
            archived, retried, buried, released, extended = await mails.lease(5, 60)
            await mails.archive(archived)
            await mails.retry(retried, timedelta(hours=1), "busy: 50%")
            await mails.bury(buried, "no such address")
            await mails.release(released)
            await mails.extend(extended, timedelta(hours=1))
            await mails.ack([])
        states = {id: sql("select state from trunkline.find('mails', %s)", id)[0] for id in range(archived.id, archived.id + 5)}
        assert list(states.values()) == ["archived", "retrying", "dead", "due", "leased"]
        assert sql("select error from trunkline.find('mails', %s)", retried.id) == ["busy: 50%"]
        assert sql("select error from trunkline.dead_letters('mails')") == ["no such address"]

    asyncio.run(scenario())


def test_other_refusals_stay_the_drivers_own(door, sql, queue_on):
    async def scenario():
        with pytest.raises(Exception, match="no_such_queue") as refused:
            async with door.begin() as connection:
                await queue_on(connection, "no_such_queue").enqueue(ADA)
        assert not isinstance(refused.value, trunkline.LeaseLost)
        assert type(refused.value).__module__.partition(".")[0] in {"psycopg", "asyncpg", "sqlalchemy", "django"}

    asyncio.run(scenario())


def test_unreadable_payload_fails_its_attempt_alone(door, sql, queue_on):
    async def scenario():
        sql("select trunkline.enqueue_many('mails', array['{\"to\": 1}', '{\"to\": \"ada\"}'])")
        async with door.begin() as connection:
            (ada,) = await queue_on(connection, "mails", Mail).lease(2)
        assert ada.payload == Mail("ada")
        assert sql("select due, leased from trunkline.stats('mails')") == [(1, 1)]
        bad = ada.id - 1
        assert "a string expected" in sql("select error from trunkline.find('mails', %s)", bad)[0]
        with pytest.raises(trunkline.BadPayload, match=rf"message {bad} .* charge Lease\({bad}, 1\)"):
            async with door.begin() as connection:
                await queue_on(connection, "mails", Mail).take(2)

    asyncio.run(scenario())


def test_a_payload_that_cannot_be_written_leaves_the_transaction_whole(door, sql, queue_on):
    async def scenario():
        async with door.begin() as connection:
            mails = queue_on(connection)
            for bad in ({"n": float("nan")}, {"n": object()}, {"n": "\0"}, {"n": "\ud800"}):
                with pytest.raises(trunkline.BadPayload):
                    await mails.enqueue(bad)
            for bad in (mails.draft({}).key("a\0"), mails.draft({}).unique("\ud800"), mails.draft({}).metadata({"a": "\0"})):
                with pytest.raises(trunkline.BadPayload):
                    await mails.enqueue(bad)
            for bad in (mails.draft({}).after(float("nan")), mails.draft({}).after(-1), mails.draft({}).priority(2**40)):
                with pytest.raises(ValueError):
                    await mails.enqueue(bad)
            for n in (-1, 2**31):
                with pytest.raises(ValueError):
                    await mails.take(n)
            await queue_on(connection).enqueue(ADA)
        assert waiting(sql) == 1

    asyncio.run(scenario())


class Level(enum.IntEnum):
    LOW = 0
    HIGH = 2


class Word(str, enum.Enum):
    KEY = "a key"


def test_options_may_be_members_of_enumerations(door, sql, queue_on):
    async def scenario():
        sql("select trunkline.create_queue('levels', 'jsonb', priorities => 3, uniqueness => true)")
        async with door.begin() as connection:
            levels = queue_on(connection, "levels")
            for priority in (Level.HIGH, True, 0):
                await levels.enqueue(levels.draft({"n": int(priority)}).priority(priority))
            await levels.enqueue_many([levels.draft({"n": int(priority)}).priority(priority) for priority in (Level.HIGH, True, False)])
            draft = levels.draft({"n": 2}).unique(Word.KEY, ttl=True, replaces=True).priority(Level.HIGH).metadata({Word.KEY: Word.KEY})
            await levels.enqueue(draft)
            assert (await levels.enqueue_many([draft]))[0].outcome == "replaced"
        async with door.begin() as connection:
            found = await queue_on(connection, "levels").lease(Level.HIGH, True)
            assert [message.payload["n"] for message in found] == [2, 2]
            found += await queue_on(connection, "levels").take(100)
        assert [message.payload["n"] for message in found] == [2, 2, 2, 1, 1, 0, 0]
        assert [message.metadata for message in found if message.metadata] == [{"a key": "a key"}]
        async with door.begin() as connection:
            with pytest.raises(TypeError, match="a priority must be a whole number, not 1.5"):
                await queue_on(connection, "levels").draft({}).priority(1.5).enqueue()

    asyncio.run(scenario())


YEAR = timedelta(days=365)


def test_library_and_transaction_refuse_the_same_due_times(door, url, queue_on):
    async def scenario():
        mails = await (await trunkline.Db.connect(url)).queue("mails", dict)
        async with door.begin() as connection:
            within = queue_on(connection)
            for of in (mails, within):
                for bad in (of.draft({}).at(datetime(5000, 1, 1)), of.draft({}).at(datetime.max), of.draft({}).at(datetime.max.replace(tzinfo=timezone.utc))):
                    with pytest.raises(ValueError, match="is out of bounds: a message is due at most 36,500 days from now"):
                        await bad.enqueue()
                with pytest.raises(ValueError, match="a delay of 36,865 days is out of bounds"):
                    await of.draft({}).after(101 * YEAR).enqueue()
                for ttl in (0, -1, 101 * YEAR):
                    with pytest.raises(ValueError, match="at most 36,500 days|at least zero"):
                        await of.draft({}).unique("a", ttl).enqueue()
                await of.draft({}).at(datetime.now() + 99 * YEAR).enqueue()
                await of.draft({}).after(100 * YEAR).enqueue()
        assert (await mails.stats()).delayed == 4

    asyncio.run(scenario())


def test_take_is_refused_outside_of_a_transaction(door, url, sql, queue_on):
    sql("select trunkline.enqueue('mails', '{}')")

    async def scenario():
        async with door.commits_each() as connection:
            with pytest.raises(RuntimeError, match="take outside of a transaction would delete its messages for good"):
                await queue_on(connection).take()
            await queue_on(connection).enqueue(ADA)
        assert waiting(sql) == 2
        async with door.begin() as connection:
            assert len(await queue_on(connection).take(2)) == 2

    asyncio.run(scenario())
