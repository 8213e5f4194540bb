//! Connections break, tasks vanish and servers stop, at each statement in the life of a message.

use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::timeout;
use tokio_postgres::Client;
use trunkline::{Db, Error, Queue, Settings, Wait, postgres::Statement};
use trunkline_embedded::Cluster;

use crate::fixture::{Place, SOON, connect, enqueued, eventually, place};

/// A trigger that terminates its own backend once, inside the statement. It counts with a sequence,
/// because a rollback does not undo a sequence.
const FUSE: &str = "
    create sequence public.fuse minvalue 0 start 0;
    create function public.trip() returns trigger language plpgsql as $$
    begin
        if nextval('public.fuse') = 1 then
            perform pg_terminate_backend(pg_backend_pid());
        end if;
        return coalesce(new, old);
    end $$;
    create table public.effects (payload int8);";

/// Installs the fuse on statements of a table, or at the commit.
async fn build_in(sql: &Client, table: &str, event: &str) {
    let trigger = match event {
        "commit" => format!(
            "create constraint trigger fuse after insert on {table} deferrable initially deferred
             for each row execute function public.trip()"
        ),
        _ => format!("create trigger fuse before {event} on {table} for each row execute function public.trip()"),
    };
    sql.batch_execute(&format!("{trigger}; select setval('public.fuse', 0)")).await.expect("armed");
}

/// Checks that the call's outcome is unknown and that nothing was stored. The fuse is blown, so the
/// next attempt succeeds.
fn broke<T: std::fmt::Debug>(what: &str, outcome: Result<T, Error>) {
    let error = outcome.expect_err(what);
    assert!(error.is_outcome_unknown() && error.is_closed(), "{what}: {error}");
}

async fn fused(table: &str, event: &str) -> Place<i64> {
    let place = place(Settings::new("int8")).await;
    place.sql.batch_execute(FUSE).await.expect("created");
    enqueued(&place.queue, 10).await;
    build_in(&place.sql, table, event).await;
    place
}

static EFFECT: Statement<(i64,), u64> = Statement::new("insert into public.effects values ($1)");

#[tokio::test(flavor = "multi_thread")]
async fn an_enqueue_that_broke_says_that_its_outcome_is_unknown() {
    let Place { queue, mut sql, db: _db, .. } = fused("trunkline.queue_q", "insert").await;
    let rearm = "select setval('public.fuse', 0)";
    broke("enqueue", queue.enqueue(1).await);
    sql.batch_execute(rearm).await.expect("armed");
    broke("enqueue_many", queue.enqueue_many(&[1, 2]).await);
    sql.batch_execute(rearm).await.expect("armed");
    let several = queue.enqueue_many(&vec![1; 20_000]).await.expect_err("its connection ends before the commit");
    assert!(several.is_closed() && !several.is_outcome_unknown(), "nothing was stored: {several}");
    sql.batch_execute(rearm).await.expect("armed");
    let transaction = sql.transaction().await.expect("begun");
    broke("enqueue_in", queue.enqueue_in(&transaction, 1).await);
    assert_eq!(queue.stats().await.expect("counted").messages, 10, "none of these came to pass");
    queue.enqueue(1).await.expect("on a new connection");
    assert_eq!(queue.stats().await.expect("counted").messages, 11);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dequeue_that_broke_leaves_everything_where_it_was() {
    for (event, leases) in [("update", true), ("delete", false)] {
        // Breaks two calls: one that the test makes itself, and one that a consumer makes and
        // repeats by itself.
        let Place { queue, sql, db: _db, .. } = fused("trunkline.queue_q", event).await;
        match leases {
            true => broke("lease", queue.lease(10).await),
            false => broke("take", queue.take(10).await),
        }
        assert!(queue.peek(20).await.expect("peeked").iter().all(|message| message.attempt == 0));
        sql.batch_execute("select setval('public.fuse', 0)").await.expect("armed");
        let mut consumer = queue.consumer(Wait::Adaptive);
        let messages = match leases {
            true => timeout(SOON, consumer.lease(10)).await,
            false => timeout(SOON, consumer.take(10)).await,
        };
        let messages = messages.expect("in time").expect("dequeued");
        assert_eq!(messages.len(), 10);
        assert!(messages.iter().all(|message| message.attempt == i32::from(leases)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_of_a_lease_that_broke_leaves_the_lease() {
    for (end, event) in [
        ("ack", "delete"),
        ("archive", "delete"),
        ("bury", "delete"),
        ("retry", "update"),
        ("release", "update"),
        ("extend", "update"),
        ("ack one", "insert"),
    ] {
        let Place { queue, sql, db: _db, .. } = place(Settings::new("int8")).await;
        sql.batch_execute(FUSE).await.expect("created");
        enqueued(&queue, 10).await;
        let mut messages = queue.lease(10).await.expect("leased");
        build_in(&sql, "trunkline.queue_q", event).await;
        if end == "ack one" {
            messages.drain(1..9); // leaves one message, whose acknowledgement splits the row
        }
        let settle = || async {
            match end {
                "archive" => queue.archive(&messages).await,
                "retry" => queue.retry(&messages, Duration::from_secs(9), "broken").await,
                "bury" => queue.bury(&messages, "broken").await,
                "release" => queue.release(&messages).await,
                "extend" => queue.extend(&messages, Duration::from_secs(99)).await,
                _ => queue.ack(&messages).await,
            }
        };
        broke(end, settle().await);
        let stats = queue.stats().await.expect("counted");
        assert_eq!((stats.leased, stats.archived, stats.dead), (10, 0, 0), "{end}");
        settle().await.unwrap_or_else(|error| panic!("{end}: the lease is held still: {error}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_transaction_has_no_effect_and_its_messages_return() {
    for (table, event) in [("public.effects", "insert"), ("public.effects", "commit"), ("trunkline.queue_q", "delete")]
    {
        let Place { queue, sql, db: _db, .. } = fused(table, event).await;
        let mut consumer = queue.consumer(Wait::Notify);
        let mut work = async || {
            let work = consumer.take_with(10, |transaction, messages| {
                async move {
                    for message in &messages {
                        transaction.run(&EFFECT, (message.payload,)).await?;
                    }
                    Ok::<_, trunkline::Error>(messages.len())
                }
                .boxed()
            });
            timeout(SOON, work).await.expect("in time")
        };
        let error = work().await.expect_err(event);
        assert!(error.is_closed(), "{event}: {error}");
        assert_eq!(error.is_outcome_unknown(), event == "commit", "{event}: {error}");
        let effects = "select count(*), count(distinct payload) from public.effects";
        assert_eq!(sql.query_one(effects, &[]).await.expect("read").get::<_, i64>(0), 0, "{event}");
        let messages = queue.peek(20).await.expect("peeked");
        assert!(messages.len() == 10 && messages.iter().all(|message| message.attempt == 0), "{event}: no charge");
        assert_eq!(work().await.expect("the second time"), 10, "{event}");
        let row = sql.query_one(effects, &[]).await.expect("read");
        assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (10, 10), "{event}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn consumer_waiting_in_a_transaction_notices_its_broken_connection() {
    let Place { url, queue, sql, db: _db } = place::<i64>(Settings::new("int8")).await;
    for wait in crate::contract::WAITS {
        let mut own = connect(&url).await;
        let pid: i32 = own.query_one("select pg_backend_pid()", &[]).await.expect("asked").get(0);
        queue.purge().await.expect("purged");
        let begun = "select state = 'idle in transaction' from pg_stat_activity where pid = $1";
        let consumed = queue.clone();
        let waiter = tokio::spawn(async move {
            let transaction = own.transaction().await.expect("begun");
            consumed.consumer(wait).take_in(&transaction, 1).await.map(|messages| messages.len())
        });
        eventually("it waits", || async { sql.query_one(begun, &[&pid]).await.expect("there").get(0) }).await;
        sql.execute("select pg_terminate_backend($1)", &[&pid]).await.expect("terminated");
        let gone = "select not exists (select from pg_stat_activity where pid = $1)";
        eventually("its backend is gone", || async { sql.query_one(gone, &[&pid]).await.expect("asked").get(0) }).await;
        queue.enqueue(1).await.expect("enqueued");
        let abort = waiter.abort_handle();
        let outcome = timeout(SOON, waiter).await;
        abort.abort();
        broke("take_in", outcome.unwrap_or_else(|_| panic!("{wait:?}: loops on a dead connection")).expect("no panic"));
    }
}

/// Runs work whose commit waits for a standby, and terminates its backend during that wait. Commits
/// of other backends also wait, perhaps before this one.
async fn cut_off<T>(sql: &Client, work: impl Future<Output = T>) -> T {
    let waiting = "select count(pg_terminate_backend(pid)) from pg_stat_activity where wait_event = 'SyncRep'";
    let ends = || {
        eventually("a commit waits", || async {
            sql.query_one(waiting, &[]).await.expect("asked").get::<_, i64>(0) > 0
        })
    };
    let mut work = std::pin::pin!(work);
    let ended = async {
        loop {
            tokio::select! {
                outcome = &mut work => return outcome,
                () = ends() => {}
            }
        }
    };
    // Without this limit, the test could wait forever for the commit.
    timeout(SOON * 2, ended).await.expect("in time")
}

/// A commit that waits for a standby is already on the local disk. If its backend ends during the
/// wait, the commit has happened, although the client receives no answer.
#[tokio::test(flavor = "multi_thread")]
async fn work_cut_off_after_its_commit_happened_exactly_once() {
    let cluster = tokio::task::spawn_blocking(|| {
        let settings = Cluster::temporary().setting("fsync", "off").setting("synchronous_standby_names", "nobody");
        settings.setting("synchronous_commit", "local").start().expect("a private PostgreSQL starts")
    });
    let cluster = cluster.await.expect("no panic");
    let url = crate::fixture::settled(&cluster.url("postgres"));
    let sql = connect(&url).await;
    let db = Db::connect(&url).await.expect("connected");
    db.migrate().await.expect("migrated");
    db.create_queue("q", &Settings::new("int8")).await.expect("created");
    sql.batch_execute("create table public.effects (payload int8)").await.expect("created");
    let queue: Queue<i64> = db.queue("q").await.expect("opened");
    enqueued(&queue, 3).await;
    let leased = queue.lease(1).await.expect("leased");
    // Prevents the library from storing a floor, because that commit would wait for the standby,
    // too. The library leaves a stored floor alone if it is ahead of the clock.
    sql.batch_execute("update trunkline.floor set reached = now() + interval '1 day'").await.expect("no floor is kept");
    // From here on, commits of new connections wait for the standby.
    sql.batch_execute("alter database postgres set synchronous_commit = on").await.expect("altered");
    let before = queue;
    let queue: Queue<i64> = Db::connect(&url).await.expect("connected").queue("q").await.expect("opened");

    broke("enqueue", cut_off(&sql, Box::pin(queue.enqueue_many(&[7]))).await);
    let payloads =
        || async { queue.peek(9).await.expect("peeked").iter().map(|message| message.payload).collect::<Vec<_>>() };
    assert!(payloads().await.contains(&7), "it happened");

    broke("ack", cut_off(&sql, queue.ack(&leased)).await);
    assert!(before.ack(&leased).await.expect_err("it happened").is_lease_lost());

    let mut consumer = queue.consumer(Wait::Adaptive);
    let work = consumer.take_with(9, |transaction, messages| {
        async move {
            for message in &messages {
                transaction.run(&EFFECT, (message.payload,)).await?;
            }
            Ok::<_, trunkline::Error>(())
        }
        .boxed()
    });
    broke("exactly once", cut_off(&sql, work).await);
    assert_eq!(payloads().await, Vec::<i64>::new(), "it happened, and is not done again");
    let effects = sql.query("select payload from public.effects order by 1", &[]).await.expect("read");
    assert_eq!(effects.iter().map(|row| row.get::<_, i64>(0)).collect::<Vec<_>>(), [1, 2, 7]);
}
