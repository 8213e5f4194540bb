//! Compaction releases the disk space of deleted rows while a snapshot prevents vacuum from doing
//! so. It changes no message.

mod refused;
mod snapshots;

use std::{
    cell::Cell,
    convert::Infallible,
    fs,
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio_postgres::Client;
use trunkline::{Db, Dequeue, Draft, Message, Queue, Settings, Wait, Worker};

use crate::{
    fixture::{Place, connect, database, drained, eventually, place, superuser, within},
    house::files,
};

const KINDS: [&str; 4] = ["plain", "priorities", "keys", "uniqueness"];

fn settings(kind: &str) -> Settings {
    let settings = Settings::new("int8");
    match kind {
        "priorities" => settings.priorities(3),
        "keys" => settings.partitions(4),
        "uniqueness" => settings.uniqueness(true),
        _ => settings,
    }
}

fn draft(kind: &str, n: i64) -> Draft<i64> {
    let draft = Draft::new(n);
    match kind {
        "priorities" => draft.priority((n % 3) as u8),
        "keys" => draft.key(format!("k{}", n % 7)),
        "uniqueness" => draft.unique(format!("u{n}").as_str()),
        _ => draft,
    }
}

/// Returns a session that has an old snapshot and has not touched the queue.
async fn old_snapshot(url: &str) -> Client {
    let old = connect(url).await;
    old.batch_execute("begin isolation level repeatable read; select 1 from trunkline.queue").await.expect("held");
    old
}

/// Compacts even if little space can be freed. Returns the number of freed bytes, and the reason if
/// there are none.
async fn compact(sql: &Client) -> (i64, Option<String>) {
    let row = sql.query_one("select freed, refused from trunkline.compact('q', 0)", &[]).await.expect("called");
    (row.get(0), row.get(1))
}

async fn freed(sql: &Client) {
    eventually("it is compacted", || async { compact(sql).await.0 > 0 }).await;
}

/// Repeats a compaction until it is not refused, and checks that it frees nothing.
async fn frees_nothing(sql: &Client) {
    eventually("it is not refused", || async {
        let (freed, refused) = compact(sql).await;
        assert_eq!(freed, 0, "what is left are messages");
        refused.is_none()
    })
    .await;
}

/// Leaves thousands of deleted rows behind.
pub async fn waste(sql: &Client) {
    sql.batch_execute(
        "insert into trunkline.queue_q (size, payload) select 1, '{-1}' from generate_series(1, 2000);
         delete from trunkline.queue_q where payload = '{-1}'",
    )
    .await
    .expect("inserted and deleted");
}

/// Begins 20,001 transactions, which makes the snapshots of other sessions old.
async fn burn(sql: &Client) {
    sql.batch_execute(
        "create table public.burnt ();
         do $$ begin
             for i in 1 .. 20001 loop
                 begin insert into public.burnt default values; exception when others then raise; end;
             end loop;
         end $$",
    )
    .await
    .expect("begun and ended");
}

/// Returns all rows of the queue's tables as text, and the states of their triggers.
async fn contents(sql: &Client) -> Vec<String> {
    let mut all = Vec::new();
    for table in ["queue_q", "unique_q", "line_q", "lane_q"] {
        let exists = sql.query_one("select to_regclass('trunkline.' || $1::text) is not null", &[&table]).await;
        if exists.expect("asked").get(0) {
            let text = format!("select t::text from trunkline.{table} t order by 1");
            all.extend(sql.query(&text, &[]).await.expect("read").iter().map(|row| row.get(0)));
        }
    }
    let triggers = "select tgname::text || tgenabled::text from pg_trigger where not tgisinternal
                    and tgrelid = 'trunkline.queue_q'::regclass order by 1";
    all.extend(sql.query(triggers, &[]).await.expect("read").iter().map(|row| row.get(0)));
    all
}

/// Enqueues messages of every sort, and leaves thousands of deleted rows behind.
async fn fill(queue: &Queue<i64>, kind: &str, sql: &Client) {
    for from in (0..5000).step_by(5) {
        queue
            .enqueue_many((from..from + 5).map(|n| draft(kind, n)).collect::<Vec<_>>().iter())
            .await
            .expect("enqueued");
    }
    let later = |n| draft(kind, n).after(Duration::from_secs(600));
    queue.enqueue_many((5000..5030).map(later).collect::<Vec<_>>().iter()).await.expect("enqueued");
    sql.batch_execute("delete from trunkline.queue_q where id > 40000 and due_at < now()").await.expect("deleted");
}

#[tokio::test(flavor = "multi_thread")]
async fn space_returns_under_an_old_snapshot_and_no_message_changes() {
    for kind in KINDS {
        let Place { queue, url, sql, db: _db } = place::<i64>(settings(kind)).await;
        // Turns autovacuum off, because a compaction skips a table while vacuum reads it.
        sql.batch_execute(
            "create function public.refuse() returns trigger language plpgsql as 'begin raise ''no''; end';
             alter table trunkline.queue_q set (autovacuum_enabled = off);
             alter table trunkline.queue_q add column tenant text default 'x', add column twice int generated always as (size * 2) stored",
        )
        .await
        .expect("altered");
        fill(&queue, kind, &sql).await;
        let is_keyed = kind == "keys";
        if !is_keyed {
            let leased = queue.lease(20).await.expect("leased");
            queue.retry(&leased[..5], Duration::from_secs(60), "failed").await.expect("held");
            queue.ack(&leased[5..10]).await.expect("held");
        }
        // Creates triggers that would fail if the compaction fired them.
        sql.batch_execute(
            "create trigger refuse before insert or delete on trunkline.queue_q for each row execute function public.refuse();
             create trigger refuse_truncate before truncate on trunkline.queue_q execute function public.refuse();
             alter table trunkline.queue_q enable always trigger refuse;
             create trigger off before insert on trunkline.queue_q for each row execute function public.refuse();
             alter table trunkline.queue_q disable trigger off",
        )
        .await
        .expect("created");
        let old = old_snapshot(&url).await;
        let before = contents(&sql).await;
        let size = async || -> i64 {
            let size = "select pg_total_relation_size('trunkline.queue_q')";
            sql.query_one(size, &[]).await.expect("asked").get(0)
        };
        let (large, freed) = (size().await, Cell::new(0));
        // Repeats the compaction, which is refused or uses another table while another session uses
        // this one.
        eventually("its table is compacted", || async {
            freed.set(compact(&sql).await.0);
            size().await < large
        })
        .await;
        assert_eq!(large - size().await, freed.get(), "{kind}");
        assert_eq!(contents(&sql).await, before, "{kind}");
        if kind == "plain" {
            frees_nothing(&sql).await;
        }
        old.batch_execute("commit").await.expect("the snapshot was held");

        sql.batch_execute("drop trigger refuse on trunkline.queue_q").await.expect("dropped");
        if kind == "uniqueness" {
            let again = draft(kind, 5000);
            assert!(!queue.enqueue(again).await.expect("enqueued").is_new(), "its message is still there");
        }
        let stats = queue.stats().await.expect("counted");
        assert_eq!(stats.delayed + stats.due + stats.leased + stats.to_retry, stats.messages, "{stats:?}");
        if !is_keyed {
            let due = stats.due as usize;
            assert_eq!(queue.take(due + 1).await.expect("taken").len(), due);
        }
    }
}

/// A stable function uses its caller's snapshot, which may be older than the lock that the function
/// waits for.
#[test]
fn no_stable_function_reads_a_queue() {
    let mut wrong = Vec::new();
    for path in files("sql/queue", "sql").into_iter().chain(files("sql/functions", "sql")) {
        let text = fs::read_to_string(&path).expect("readable");
        let code: String = text.lines().map(|line| line.split("--").next().unwrap_or_default()).collect();
        let reads = ["queue_", "unique_", "line_", "lane_"].iter().any(|table| {
            code.contains(&format!("from trunkline.{{{table}}}")) || code.contains(&format!("'{table}' || queue"))
        });
        // Excludes a function that reads the names of columns, not messages.
        if reads && code.contains("language plpgsql stable") && !path.ends_with("check_columns.sql") {
            wrong.push(path);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// A statement that has to wait for the compaction's lock sees the messages afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn statement_behind_a_compaction_sees_all_messages() {
    let Place { queue, url, sql, db: _db } = place::<i64>(Settings::new("int8")).await;
    queue.enqueue_many(&(0..10).collect::<Vec<_>>()).await.expect("enqueued");
    let leased = queue.lease(1).await.expect("leased");
    let (id, attempt) = (leased[0].id, leased[0].attempt);
    sql.batch_execute("alter table trunkline.queue_q add column tenant text default 'x'").await.expect("added");
    let looks = [
        "select count(*) = 0 from trunkline.gone('q', array[ID], array[ATTEMPT])".to_owned(),
        "select state = 'leased' from trunkline.find('q', ID)".to_owned(),
        "select columns ->> 'tenant' = 'x' from trunkline.own_columns('q', array[ID])".to_owned(),
        "select count(*) = 10 from trunkline.messages('q')".to_owned(),
        "select count(*) = 10 from trunkline.messages('q', 20)".to_owned(),
        "select due + leased = 10 from trunkline.stats('q')".to_owned(),
        "select oldest is not null from trunkline.do_look_q('-infinity')".to_owned(),
        "select stray is not null from trunkline.do_sweep_q(now(), 0)".to_owned(),
        "select stray is not null from trunkline.do_sweep_q(now(), null)".to_owned(),
        "select count(*) = 1 from trunkline.reschedule('q', array[ID + 1], now() - interval '1 s') r".to_owned(),
        "select count(*) = 1 from trunkline.lease('q')".to_owned(),
        "select count(*) = 1 from trunkline.cancel('q', array[ID]) c".to_owned(),
    ];
    for look in looks {
        let look = look.replace("ID", &id.to_string()).replace("ATTEMPT", &attempt.to_string());
        let (compacting, looking) = (superuser(&url).await, connect(&url).await);
        let prepared = looking.prepare(&look).await.expect("prepared");
        if !["cancel(", "lease(", "reschedule("].iter().any(|change| look.contains(change)) {
            assert!(looking.query_one(&prepared, &[]).await.expect("ran").get::<_, bool>(0), "before: {look}");
        }
        waste(&sql).await;
        compacting.batch_execute("begin").await.expect("begun");
        freed(&compacting).await;
        let waits =
            tokio::spawn(async move { looking.query_one(&prepared, &[]).await.map(|row| row.get::<_, bool>(0)) });
        eventually("it waits", || async {
            let waiting = "select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')";
            sql.query_one(waiting, &[]).await.expect("asked").get(0)
        })
        .await;
        compacting.batch_execute("commit").await.expect("compacted");
        assert!(waits.await.expect("no panic").expect(&look), "{look}");
    }
}

/// The library starts compactions by itself, and consumers do not notice.
#[tokio::test(flavor = "multi_thread")]
async fn library_compacts_a_large_queue_while_it_consumes() {
    let url = database().await;
    let db = Db::connect(&url).await.expect("connected");
    db.create_queue("q", &Settings::new("bytea")).await.expect("created");
    let queue: Queue<Vec<u8>> = db.queue("q").await.expect("opened");
    let (sql, _old) = (connect(&url).await, old_snapshot(&url).await);
    burn(&sql).await;
    let mut consumer = queue.consumer(Wait::Notify);
    let consuming = tokio::spawn(async move { while consumer.take(Dequeue::up_to(100)).await.is_ok() {} });
    for _ in 0..40 {
        queue.enqueue_many(&vec![vec![7; 100_000]; 10]).await.expect("enqueued");
    }
    let size = "select pg_total_relation_size('trunkline.queue_q')";
    // Waits longer than ten seconds: a compaction that has waited 20 ms for its lock is tried again
    // after that time.
    within(Duration::from_secs(120), "the space is given back", || async {
        queue.enqueue(vec![1]).await.expect("enqueued"); // the floor moves only while messages are dequeued
        sql.query_one(size, &[]).await.expect("asked").get::<_, i64>(0) < 4_000_000
    })
    .await;
    consuming.abort();
}

/// Producers, consumers and compactions run at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn traffic_goes_on_during_compactions_and_loses_nothing() {
    for kind in KINDS {
        let Place { queue, url, sql, db: _db } = place::<i64>(settings(kind)).await;
        let _old = old_snapshot(&url).await;
        let stop = Arc::new(AtomicBool::new(false));
        let compacting = tokio::spawn({
            let (sql, stop) = (connect(&url).await, stop.clone());
            async move {
                let mut count = 0;
                while !stop.load(Ordering::Relaxed) {
                    count += u32::from(compact(&sql).await.0 > 0);
                }
                count
            }
        });
        let handled = Arc::new(Mutex::new(vec![0_u8; 1000]));
        let worker = Worker::new(queue.clone(), {
            let handled = handled.clone();
            move |message: Message<i64>| {
                handled.lock().expect("no panic")[message.payload as usize] += 1;
                async { Ok::<(), Infallible>(()) }
            }
        });
        let working = tokio::spawn(worker.run(pending::<()>()));
        for n in 0..1000 {
            queue.enqueue(draft(kind, n)).await.expect("enqueued");
        }
        drained(&queue).await;
        stop.store(true, Ordering::Relaxed);
        let count = compacting.await.expect("no panic");
        working.abort();
        assert!(count > 0, "{kind}: {count} compactions");
        assert!(handled.lock().expect("no panic").iter().all(|times| *times == 1), "{kind}");
        let left = sql.query_one("select count(*) from trunkline.dead_q", &[]).await.expect("counted");
        assert_eq!(left.get::<_, i64>(0), 0);
    }
}
