//! Tests unique keys: at most one message per key exists, until it has ended or for a given time,
//! no matter how many callers enqueue at once.

mod costs;
mod endings;
mod model;
mod open_claim;
mod races;
mod replaced;

use std::time::Duration;

use tokio_postgres::Client;
use trunkline::{Draft, Enqueued, Queue, Settings, Unique, Wait};

use crate::fixture::{Ids, Place, eventually, place};

pub const HOUR: Duration = Duration::from_secs(3600);

pub fn settings() -> Settings {
    Settings::new("int8").uniqueness(true)
}

pub fn of(payload: i64, key: &str) -> Draft<i64> {
    Draft::new(payload).unique(key)
}

/// Returns the keys that are held, in order.
pub async fn held(sql: &Client) -> Vec<String> {
    let rows = sql.query("select key from trunkline.unique_q order by key", &[]).await.expect("read");
    rows.iter().map(|row| row.get(0)).collect()
}

/// Makes all keys older by `seconds`, without a change to the messages.
pub async fn older(sql: &Client, seconds: f64) {
    let moved = "update trunkline.unique_q set until = until - $1 * interval '1 second' where until is not null";
    sql.execute(moved, &[&seconds]).await.expect("moved");
}

#[tokio::test(flavor = "multi_thread")]
async fn duplicate_key_returns_the_id_of_the_first_message() {
    let Place { queue, sql, db, .. } = place::<i64>(settings()).await;
    let first = queue.enqueue(of(1, "a")).await.expect("enqueued").id();
    assert_eq!(queue.enqueue(of(2, "a")).await.expect("enqueued").id(), first);
    assert_eq!(queue.enqueue(of(2, "a")).await.expect("enqueued"), Enqueued::Duplicate(first));
    assert!(queue.enqueue(of(3, "b")).await.expect("enqueued").is_new());
    assert!(queue.enqueue(4).await.expect("enqueued").is_new(), "without a key it is as ever");
    assert_eq!(queue.send_direct(of(5, "a")).await.expect("enqueued").id(), first);
    let transaction = db.begin().await.expect("begun");
    assert_eq!(queue.enqueue_in(&transaction, of(6, "a")).await.expect("enqueued").id(), first);
    let inside =
        queue.enqueue_many_in(&transaction, [of(7, "c"), of(8, "b"), of(9, "c")]).await.expect("enqueued").ids();
    assert!(inside[0] == inside[2] && inside[1] != inside[0], "{inside:?}");
    let sent = queue.send_enqueue(&transaction, of(10, "a")).await.expect("sent");
    let many = queue.send_enqueue_many(&transaction, [of(11, "d"), Draft::new(12)]).await.expect("sent");
    transaction.commit().await.expect("committed");
    assert_eq!((sent.await.expect("enqueued").id(), many.await.expect("enqueued").len()), (first, 2));
    assert_eq!(held(&sql).await, ["a", "b", "c", "d"]);
    let mut payloads: Vec<i64> = queue.take(100).await.expect("taken").iter().map(|message| message.payload).collect();
    payloads.sort_unstable();
    assert_eq!(payloads, [1, 3, 4, 7, 11, 12]);
    assert!(held(&sql).await.is_empty());
    let description = db.describe_queue("q").await.expect("described");
    assert!(description.uniqueness && queue.description().uniqueness);
}

#[tokio::test(flavor = "multi_thread")]
async fn key_with_a_time_outlasts_its_message() {
    let Place { queue, sql, .. } = place::<i64>(settings()).await;
    let of = |payload| of(payload, "k").unique(Unique::key("k").within(HOUR));
    let first = queue.enqueue(of(1)).await.expect("enqueued").id();
    queue.take(1).await.expect("taken");
    assert_eq!(queue.enqueue(of(2)).await.expect("enqueued"), Enqueued::Duplicate(first));
    assert_eq!(queue.enqueue(self::of(2, "k")).await.expect("enqueued"), Enqueued::Duplicate(first));
    older(&sql, 3590.0).await;
    assert_eq!(queue.enqueue(of(2)).await.expect("enqueued").id(), first, "not yet");
    older(&sql, 10.0).await;
    // The key has expired, so the second message claims it, and the time of the key starts again.
    let second = queue.enqueue(of(3)).await.expect("enqueued").id();
    assert_ne!(second, first);
    older(&sql, 3500.0).await;
    assert_eq!(queue.enqueue(of(4)).await.expect("enqueued").id(), second);
    older(&sql, 200.0).await;
    // The key has expired again, although the second message still waits. So a third message claims
    // the key.
    let third = queue.enqueue(self::of(5, "k")).await.expect("enqueued");
    assert!(third.is_new());
    assert_eq!(queue.take(10).await.expect("taken").len(), 2);
    assert!(queue.enqueue(of(6)).await.expect("enqueued").is_new(), "the third held it until its end");
}

#[tokio::test(flavor = "multi_thread")]
async fn first_of_many_with_a_key_is_stored_in_place() {
    let Place { queue, .. } = place::<i64>(settings().priorities(2).max_batch(64)).await;
    let taken = queue.enqueue(of(-1, "7")).await.expect("enqueued").id();
    let drafts: Vec<Draft<i64>> = (0..1000)
        .map(|nr| match nr % 3 {
            0 => Draft::new(nr).priority((nr % 2) as u8),
            _ => of(nr, &(nr % 100).to_string()).priority((nr % 2) as u8).with("nr", nr.to_string()),
        })
        .collect();
    let all = queue.enqueue_many(&drafts).await.expect("enqueued");
    let keys = |nr: i64| (0..nr).any(|before| before % 3 != 0 && before % 100 == nr % 100);
    for (nr, enqueued) in (0..).zip(&all) {
        let is_new = nr % 3 == 0 || !keys(nr) && nr % 100 != 7;
        assert_eq!(enqueued.is_new(), is_new, "{nr}");
        let found = queue.find(enqueued.id()).await.expect("looked for").expect("there");
        match nr % 3 {
            0 => assert_eq!(found.payload, nr),
            _ if nr % 100 == 7 => assert_eq!(enqueued.id(), taken),
            _ => {
                assert_eq!(found.payload % 100, nr % 100);
                assert_eq!(found.metadata.get("nr"), Some(&*found.payload.to_string()));
            }
        }
    }
    // Duplicates leave no gaps in rows, and there are only as many rows as the new messages need.
    let stored = all.iter().filter(|one| one.is_new()).count();
    let stats = queue.stats().await.expect("counted");
    assert_eq!(stats.messages, stored as u64 + 1);
    assert!(stats.rows <= 3 + stored as u64 / 64 + 1, "{stats:?}");
    assert!(queue.enqueue_many(Vec::<Draft<i64>>::new()).await.expect("nothing").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn sql_knows_keys_and_says_what_became_of_a_message() {
    let Place { sql, .. } = place::<i64>(settings().priorities(3)).await;
    let told = async |call: &str| {
        let rows = sql.query(&format!("select id, outcome from trunkline.{call}"), &[]).await.expect(call);
        rows.iter().map(|row| (row.get(0), row.get(1))).collect::<Vec<(i64, String)>>()
    };
    let id =
        async |call: &str| sql.query_one(&format!("select trunkline.{call}"), &[]).await.expect(call).get::<_, i64>(0);
    let first = told("enqueue_unique('q', 1::int8, 'a', priority => 2)").await.remove(0);
    assert_eq!(first.1, "new");
    assert_eq!(told("enqueue_unique('q', '2', 'a')").await, [(first.0, "duplicate".to_owned())]);
    assert_eq!(
        told("enqueue_unique('q', '3', 'a', replace => true, delay => '1 hour', metadata => '{\"b\": \"c\"}')").await,
        [(first.0, "replaced".to_owned())]
    );
    let found = "select payload || ' ' || state || ' ' || metadata from trunkline.find('q', $1)";
    assert_eq!(sql.query_one(found, &[&first.0]).await.expect("found").get::<_, &str>(0), "3 delayed {\"b\": \"c\"}");
    let lane = "select lane from trunkline.queue_q";
    assert_eq!(sql.query_one(lane, &[]).await.expect("there").get::<_, i16>(0), 2, "the priority is that of the first");
    assert_eq!(id("enqueue('q', 4::int8, unique_key => 'a')").await, first.0);
    assert_eq!(id("enqueue('q', '4', unique_key => 'a', unique_for => '1 minute')").await, first.0);
    let many = told("enqueue_unique_many('q', array[5, 6, 7]::int8[], array['b', 'a', null])").await;
    assert_eq!(many.iter().map(|(_, outcome)| &**outcome).collect::<Vec<_>>(), ["new", "duplicate", "new"]);
    let many = told("enqueue_unique_many('q', array['8', '9'], array['b', 'c'], unique_for => '1 month')").await;
    assert_eq!(many.iter().map(|(_, outcome)| &**outcome).collect::<Vec<_>>(), ["duplicate", "new"]);
    assert!(told("enqueue_unique_many('q', '{}'::text[], '{}')").await.is_empty());
    for call in [
        "enqueue_many('q', array[1, 2]::int8[], unique_keys => array['a', 'a'])",
        "enqueue_many('q', array['1', '2'], unique_keys => array['a', 'a'])",
        "enqueue_many('q', '{1,2}', unique_keys => array['a', 'a'])",
    ] {
        let rows = sql.query(&format!("select trunkline.{call}"), &[]).await.expect(call);
        assert_eq!(rows.iter().map(|row| row.get(0)).collect::<Vec<i64>>(), [first.0, first.0], "{call}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_consumer_is_woken_by_new_and_replaced_messages() {
    let Place { queue, db, sql, .. } = place::<i64>(settings()).await;
    let waiting = || {
        let mut consumer = queue.consumer(Wait::Notify);
        tokio::spawn(async move { consumer.take(1).await })
    };
    let in_time = async |task: tokio::task::JoinHandle<_>| -> i64 {
        let taken: trunkline::Result<Vec<trunkline::Message<i64>>> =
            tokio::time::timeout(crate::fixture::SOON, task).await.expect("in time").expect("no panic");
        taken.expect("taken")[0].payload
    };
    let task = waiting();
    crate::fixture::until_asleep(&sql).await;
    queue.enqueue(of(1, "a")).await.expect("enqueued");
    assert_eq!(in_time(task).await, 1);
    queue.enqueue(of(2, "b").after(HOUR)).await.expect("enqueued");
    let task = waiting();
    crate::fixture::until_asleep(&sql).await;
    queue.enqueue(Draft::new(3).unique(Unique::key("b").replacing())).await.expect("enqueued");
    assert_eq!(in_time(task).await, 3);
    let task = waiting();
    crate::fixture::until_asleep(&sql).await;
    let transaction = db.begin().await.expect("begun");
    queue.enqueue_in(&transaction, of(4, "c")).await.expect("enqueued");
    transaction.commit().await.expect("committed");
    assert_eq!(in_time(task).await, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_key_is_refused_with_advice() {
    let Place { queue, db, sql, .. } = place::<i64>(settings()).await;
    db.create_queue("plain", &Settings::new("int8")).await.expect("created");
    let plain: Queue<i64> = db.queue("plain").await.expect("opened");
    let long = "k".repeat(1025);
    for (queue, key, says) in [
        (&plain, "k", "Settings::uniqueness"),
        (&queue, "", "empty"),
        (&queue, &long, "1025 bytes"),
        (&queue, "\0", "zero byte"),
    ] {
        let transaction = db.begin().await.expect("begun");
        for error in [
            queue.enqueue(of(1, key)).await.expect_err(says),
            queue.enqueue_many([of(1, "fine"), of(2, key)]).await.expect_err(says),
            queue.enqueue_in(&transaction, of(1, key)).await.expect_err(says),
            queue.enqueue_many_in(&transaction, [of(1, key)]).await.expect_err(says),
            queue.send_enqueue(&transaction, of(1, key)).await.map(drop).expect_err(says),
        ] {
            assert!(error.to_string().contains(says), "{error}");
        }
    }
    for (call, says) in [
        ("enqueue('plain', '1', unique_key => 'k')", "uniqueness => true"),
        ("enqueue_unique('plain', 1::int8, 'k')", "uniqueness => true"),
        ("enqueue_many('plain', '{1}', unique_keys => '{k}')", "uniqueness => true"),
        ("prune_keys('plain')", "uniqueness => true"),
        ("enqueue('q', '1', unique_key => '')", "1 to 1,024"),
        ("enqueue('q', '1', unique_key => repeat('é', 513))", "1 to 1,024"),
        ("enqueue('q', '1', unique_key => 'k', unique_for => '0')", "more than zero"),
        ("enqueue('q', '1', unique_key => 'k', unique_for => '200 years')", "36500 days"),
        ("enqueue('q', '1', unique_key => 'k', delay => '-1 second')", "at least zero"),
        ("enqueue('q', '1', unique_key => 'k', priority => 1)", "priorities"),
        ("enqueue('q', '1', unique_key => 'k', metadata => '[]')", "names with string values"),
        ("enqueue_many('q', '{1,2}', unique_keys => '{k}')", "one for each payload"),
        ("enqueue_many('q', null::text[], unique_keys => '{}')", "an empty one"),
        ("enqueue_many('q', array['1', null], unique_keys => '{k,null}')", "Every message needs a payload"),
    ] {
        let error = sql.batch_execute(&format!("select trunkline.{call}")).await.expect_err(call);
        let hint = error.as_db_error().and_then(|error| error.hint()).expect(call).to_owned();
        assert!(hint.contains(says), "{call}: {hint}");
    }
    assert_eq!(queue.stats().await.expect("counted").messages, 0);
    let other = db.create_queue("q", &Settings::new("int8")).await.expect_err("it has uniqueness");
    assert!(other.to_string().contains("other settings"), "{other}");
    // Queues without uniqueness have no extra table, function or trigger.
    let traces = "select count(*) from pg_class where relname like 'unique%plain'
                  union all select count(*) from pg_proc where proname in ('do_unique_plain', 'do_free_plain', 'do_replace_plain', 'do_forget_plain')
                  union all select count(*) - 1 from pg_trigger where tgrelid = 'trunkline.queue_plain'::regclass";
    for row in sql.query(traces, &[]).await.expect("read") {
        assert_eq!(row.get::<_, i64>(0), 0);
    }
    db.drop_queue("q").await.expect("dropped");
    db.create_queue("q", &settings()).await.expect("created again");
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_payload_fails_its_own_caller_only() {
    let Place { queue, sql, .. } = place::<i64>(settings()).await;
    sql.batch_execute("alter table trunkline.queue_q add check (not 13 = any (payload))").await.expect("checked");
    let calls = (0..100).map(|payload| {
        let queue = queue.clone();
        tokio::spawn(async move { queue.enqueue(of(payload, &payload.to_string())).await })
    });
    for (payload, call) in calls.collect::<Vec<_>>().into_iter().enumerate() {
        let outcome = call.await.expect("no panic");
        assert_eq!(outcome.is_err_and(|error| error.is_bad_payload()), payload == 13, "{payload}");
    }
    assert_eq!(held(&sql).await.len(), 99, "its key is free");
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_keys_are_removed_during_enqueues() {
    let Place { queue, sql, .. } = place::<i64>(settings()).await;
    let drafts = |from: i64| {
        (from..from + 1000)
            .map(|nr| Draft::new(nr).unique(Unique::key(nr.to_string()).within(HOUR)))
            .collect::<Vec<_>>()
    };
    queue.enqueue_many(drafts(0)).await.expect("enqueued");
    older(&sql, 3700.0).await;
    let mut from = 1000;
    eventually("the first are gone", || {
        from += 1000;
        let drafts = drafts(from);
        async {
            queue.enqueue_many(drafts).await.expect("enqueued");
            let left = "select count(*) from trunkline.unique_q where until < now()";
            sql.query_one(left, &[]).await.expect("counted").get::<_, i64>(0) == 0
        }
    })
    .await;
    older(&sql, 3700.0).await;
    let live = queue.enqueue(of(-1, "live")).await.expect("enqueued").id();
    let pruned: i64 = sql.query_one("select trunkline.prune_keys('q')", &[]).await.expect("pruned").get(0);
    assert!(pruned >= 1000, "{pruned}");
    assert_eq!(held(&sql).await, ["live"]);
    assert_eq!(queue.enqueue(of(-1, "live")).await.expect("enqueued").id(), live);
}
