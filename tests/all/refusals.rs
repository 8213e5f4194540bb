//! A user's trigger may raise an error with any code. The error affects only its own message, both
//! at the enqueue and at the end of a lease.

use std::{convert::Infallible, sync::Arc, time::Duration};

use futures_util::future::join_all;
use tokio::{sync::Notify, time::timeout};
use tokio_postgres::Client;
use trunkline::{Draft, Error, Failure, Message, RetryPolicy, Settings, Unique, Worker};

use crate::fixture::{Place, Runs, SOON, connect, database, enqueued, eventually, place};

/// User-defined codes, codes of the server, and an unknown code.
const CODES: [&str; 9] = ["P0001", "UE001", "XX000", "0A000", "55000", "38000", "42501", "55P03", "40001"];

/// Creates a trigger that raises `code` for a row with the payload 13.
pub async fn refuse(sql: &Client, code: &str, event: &str) {
    let row = if event == "insert" { "new" } else { "old" };
    let text = format!(
        "create or replace function public.refuse() returns trigger language plpgsql as
         $$ begin if 13 = any ({row}.payload) then raise exception 'not this one' using errcode = '{code}'; end if;
            if tg_op = 'DELETE' then return old; end if; return new; end $$;
         create or replace trigger refuse before {event} on trunkline.queue_q for each row execute function public.refuse()"
    );
    sql.batch_execute(&text).await.expect("created");
}

fn refused_alone<T: std::fmt::Debug>(code: &str, outcomes: &[Result<T, Error>]) {
    for (payload, outcome) in outcomes.iter().enumerate() {
        match (payload, outcome) {
            (13, Err(error)) => {
                assert!(error.to_string().contains("not this one"), "{code}: {error}");
                assert!(!error.is_outcome_unknown(), "{code}: {error}");
            }
            (13, Ok(stored)) => panic!("{code}: it was stored: {stored:?}"),
            (_, outcome) => assert!(outcome.is_ok(), "{code}: {payload} is a stranger: {outcome:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_enqueue_fails_alone_in_a_shared_row() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8").uniqueness(true)).await;
    for code in CODES {
        refuse(&sql, code, "insert").await;
        let calls = join_all((0..50).map(|payload| queue.enqueue(payload)));
        refused_alone(code, &timeout(SOON, calls).await.expect("in time"));
        let unique = |payload: i64| Draft::new(payload).unique(Unique::key(format!("{code} {payload}")));
        let calls = join_all((0..50).map(|payload| queue.enqueue(unique(payload))));
        refused_alone(code, &timeout(SOON, calls).await.expect("in time"));
        assert_eq!(queue.purge().await.expect("purged"), 98, "{code}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_that_a_trigger_skips_is_tried_message_by_message() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    let text = "create function public.pass_over() returns trigger language plpgsql as
                $$ begin return case when 13 = any (new.payload) then null else new end; end $$;
                create trigger pass_over before insert on trunkline.queue_q for each row execute function public.pass_over()";
    sql.batch_execute(text).await.expect("created");
    let outcomes = timeout(SOON, join_all((0..50).map(|payload| queue.enqueue(payload)))).await.expect("in time");
    let failed: Vec<usize> = (0..50).filter(|at| outcomes[*at].is_err()).collect();
    assert_eq!(failed, [13]);
}

#[tokio::test(flavor = "multi_thread")]
async fn enqueue_refused_slowly_each_time_is_given_up_soon() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    let text = "create function public.late() returns trigger language plpgsql as
                $$ begin perform pg_sleep(0.4); raise exception 'too late'; end $$;
                create trigger late before insert on trunkline.queue_q for each row execute function public.late()";
    sql.batch_execute(text).await.expect("created");
    let outcomes = timeout(SOON, join_all((0..200).map(|payload| queue.enqueue(payload)))).await.expect("in time");
    assert!(outcomes.iter().all(Result::is_err));
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_ends_the_leases_beside_a_refused_one() {
    for code in CODES {
        let Place { queue, sql, db: _db, .. } = place(Settings::new("int8").max_batch(1)).await;
        enqueued(&queue, 50).await;
        refuse(&sql, code, "delete").await;
        let worker = Worker::new(queue.clone(), |message: Message<i64>| async move {
            if message.payload % 10 == 4 { Err(Failure::dead("not wanted")) } else { Ok(()) }
        });
        let runs = Runs::start(worker.concurrency(50));
        eventually("all others have ended", || async {
            let stats = queue.stats().await.expect("counted");
            (stats.messages, stats.dead) == (1, 5)
        })
        .await;
        // Later messages are not blocked.
        let id = queue.enqueue(7).await.expect("enqueued").id();
        eventually("the next is done", || async { queue.find(id).await.expect("looked for").is_none() }).await;
        drop(runs);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_retry_of_a_key_does_not_hold_up_other_keys() {
    // A refusal must not make the worker pause, because these messages would then take minutes.
    retried_with("UE001", 100).await;
    // The codes of the server may concern every statement. The worker pauses, but not for long.
    for code in ["40001", "42501", "55P03", "XX000"] {
        retried_with(code, 10).await;
    }
}

/// Retries a message, which the server refuses with this code, while messages of other keys arrive.
async fn retried_with(code: &str, messages: i64) {
    let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8").partitions(2)).await;
    let gates = Arc::new((Notify::new(), Notify::new()));
    let of_handler = gates.clone();
    let worker = Worker::new(queue.clone(), move |message: Message<i64>| {
        let gates = of_handler.clone();
        async move {
            if message.payload != 13 {
                return Ok(());
            }
            gates.0.notify_one();
            gates.1.notified().await;
            Err(Failure::retry("it fails"))
        }
    });
    queue.enqueue(Draft::new(13).key("refused")).await.expect("enqueued");
    let runs = Runs::start(worker);
    timeout(SOON, gates.0.notified()).await.expect("it begins");
    refuse(&sql, code, "update").await;
    gates.1.notify_one();
    let others = async {
        for n in 100..100 + messages {
            let draft = Draft::new(n).key(format!("key {n}"));
            let id = queue.enqueue(draft).await.expect("enqueued").id();
            eventually("it is done", || async { queue.find(id).await.expect("looked for").is_none() }).await;
        }
    };
    timeout(SOON, others).await.unwrap_or_else(|_| panic!("{code}: no other key waits"));
    drop(runs);
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_releases_and_renews_beside_a_refused_lease() {
    let Place { queue, sql, db: _db, .. } =
        place(Settings::new("int8").max_batch(1).lease(Duration::from_secs(2))).await;
    enqueued(&queue, 20).await;
    let (began, gate) = (tokio::sync::Semaphore::new(0), tokio::sync::Semaphore::new(0));
    let shared = std::sync::Arc::new((began, gate));
    let handled = shared.clone();
    let worker = Worker::new(queue.clone(), move |_: Message<i64>| {
        let shared = handled.clone();
        async move {
            shared.0.add_permits(1);
            shared.1.acquire().await.expect("open").forget();
            Ok::<(), Infallible>(())
        }
    });
    let runs = Runs::start(worker.concurrency(20));
    shared.0.acquire_many(20).await.expect("open").forget();
    refuse(&sql, "UE001", "update").await;
    // Waits until the worker has renewed the two-second leases of the other messages by more than a
    // second.
    let soonest =
        "select min(due_at) > (select min(due_at) from public.before) + interval '1 second' from trunkline.queue_q
                   where payload[1] <> 13 and due_at > clock_timestamp()
                   having count(*) = 19";
    sql.batch_execute("create table public.before as select due_at from trunkline.queue_q").await.expect("created");
    eventually("nineteen are renewed", || async {
        sql.query_opt(soonest, &[]).await.expect("read").is_some_and(|row| row.get(0))
    })
    .await;
    shared.1.add_permits(20);
    eventually("all are done that are held still", || async { queue.stats().await.expect("counted").messages <= 1 })
        .await;
    runs.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unencodable_reason_is_stored_in_ascii() {
    let url = database().await;
    let admin = crate::fixture::superuser(&url).await;
    let name: String = admin.query_one("select current_database()", &[]).await.expect("read").get(0);
    let latin = format!("{name}_latin");
    let create = format!(
        "create database {latin} template template0 encoding 'LATIN1' locale 'C' owner {}",
        crate::fixture::user()
    );
    admin.batch_execute(&create).await.expect("created");
    let db = trunkline::Db::connect(&url.replace(&name, &latin)).await.expect("connected");
    db.migrate().await.expect("migrated");
    db.create_queue("q", &Settings::new("int8").max_attempts(1)).await.expect("created");
    let queue = db.queue::<i64>("q").await.expect("opened");
    queue.enqueue_many(&[1, 2]).await.expect("enqueued");
    let worker =
        Worker::new(queue.clone(), |_: Message<i64>| async { Err::<(), _>(Failure::retry("na\u{ef}ve \u{1f600}")) });
    let runs = Runs::start(worker.retry(RetryPolicy::fixed(Duration::ZERO)));
    eventually("both are dead", || async { queue.stats().await.expect("counted").dead == 2 }).await;
    runs.stop().await;
    for letter in queue.dead_letters(0, 9).await.expect("read") {
        assert_eq!(letter.error, "na\\u{ef}ve \\u{1f600}");
    }
}

/// Users' functions run under Trunkline's `search_path`, and the error message explains this.
#[tokio::test(flavor = "multi_thread")]
async fn trigger_naming_a_table_without_its_schema_is_explained() {
    let Place { queue, sql, url, .. } = place::<i64>(Settings::new("int8")).await;
    let text = "create table public.seen (id bigint);
                create function public.note() returns trigger language plpgsql as
                $$ begin insert into seen values (old.id); return new; end $$;
                create trigger note after update on trunkline.queue_q for each row execute function public.note()";
    sql.batch_execute(text).await.expect("created");
    queue.enqueue(1).await.expect("enqueued");
    let error = queue.lease(1).await.expect_err("the trigger has no such table");
    assert!(!error.is_no_queue(), "{error}");
    assert!(error.to_string().contains("names seen without its schema"), "{error}");
    connect(&url).await.batch_execute("alter function public.note() set search_path = public").await.expect("altered");
    assert_eq!(queue.lease(1).await.expect("leased").len(), 1);
    // A missing queue is still reported as a missing queue.
    sql.batch_execute("select trunkline.drop_queue('q')").await.expect("dropped");
    assert!(queue.lease(1).await.expect_err("gone").is_no_queue());
    assert!(queue.enqueue(1).await.expect_err("gone").is_no_queue());
}

/// Cases in which a user's function raises the code of a missing object, or in which the missing
/// object has a name that resembles the queue's.
#[tokio::test(flavor = "multi_thread")]
async fn object_that_a_trigger_misses_is_not_the_queue() {
    let Place { db, queue, sql, url, .. } = place::<i64>(Settings::new("int8")).await;
    let mut own = connect(&url).await;
    for (body, said) in [
        ("perform public.audit_q(new.id)", "audit_q"),
        ("perform public.nowhere(new.id)", "nowhere"),
        ("insert into public.seen_q values (1)", "seen_q"),
        ("if new.payload = true then return null; end if", "operator does not exist"),
        ("raise undefined_function using message = 'no such tariff'", "no such tariff"),
        ("raise undefined_table using message = 'no such ledger'", "no such ledger"),
        ("raise invalid_schema_name using message = 'no such tenant'", "no such tenant"),
    ] {
        let text = format!(
            "create or replace function public.note() returns trigger language plpgsql as
             $$ begin {body}; return new; end $$;
             create or replace trigger note before insert on trunkline.queue_q for each row execute function public.note()"
        );
        sql.batch_execute(&text).await.expect("created");
        let foreign = own.transaction().await.expect("begun");
        let transaction = db.begin().await.expect("begun");
        for error in [
            queue.enqueue(1).await.expect_err(body),
            queue.enqueue_in(&transaction, 1).await.expect_err(body),
            queue.enqueue_in(&foreign, 1).await.expect_err(body),
        ] {
            assert!(!error.is_no_queue() && error.to_string().contains(said), "{body}: {error}");
        }
    }
    sql.batch_execute("select trunkline.drop_queue('q')").await.expect("dropped");
    let foreign = own.transaction().await.expect("begun");
    assert!(queue.enqueue_in(&foreign, 1).await.expect_err("gone").is_no_queue());
    assert!(queue.enqueue(1).await.expect_err("gone").is_no_queue());
}
