//! Bad input causes a clear error for its own caller only, and nothing is lost.

mod rights;

use std::{collections::BTreeMap, time::Duration};

use futures_util::future::join_all;
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use trunkline::{Dequeue, Draft, Error, Json, MAX_PAYLOAD, Settings, Wait};

use crate::fixture::{Ids, Place, SOON, connect, database, db, place};

/// Returns the error's code, or its text if the server reported no code.
fn code(error: &Error) -> String {
    error.sqlstate().map_or_else(|| error.to_string(), |code| code.code().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn payloads_up_to_64_mib_pass_and_no_larger_one() {
    let Place { db, queue, sql, .. } = place::<Vec<u8>>(Settings::new("bytea")).await;
    db.create_queue("text", &Settings::new("text")).await.expect("created");
    let text = db.queue::<String>("text").await.expect("opened");
    for bytes in [0, 1, 1 << 20, MAX_PAYLOAD] {
        let payload = vec![b'x'; bytes];
        let id = queue.enqueue(&payload).await.expect("enqueued").id();
        let text_id = text.enqueue(String::from_utf8(payload.clone()).expect("ASCII")).await.expect("enqueued").id();
        let got = queue.take(9).await.expect("taken");
        assert!(matches!(&got[..], [message] if message.id == id && message.payload == payload), "{bytes} bytes");
        let got = text.take(9).await.expect("taken");
        assert!(matches!(&got[..], [message] if message.id == text_id && message.payload.as_bytes() == payload));
    }
    let payload = vec![b'x'; MAX_PAYLOAD + 1];
    let texted = String::from_utf8(payload.clone()).expect("ASCII");
    for error in [
        queue.enqueue(&payload).await.expect_err("too large"),
        queue.enqueue_many(&[vec![], payload]).await.expect_err("too large"),
        text.enqueue(&texted).await.expect_err("too large"),
    ] {
        assert!(error.is_bad_payload() && error.to_string().contains("67108865"), "{error}");
    }
    for queue in ["q", "text"] {
        sql.execute(&format!("select trunkline.enqueue('{queue}', repeat('x', 67108864))"), &[]).await.expect("fits");
        let error = sql.execute(&format!("select trunkline.enqueue('{queue}', repeat('x', 67108865))"), &[]).await;
        let error = error.expect_err("too large");
        let said = error.as_db_error().expect("the server's");
        assert_eq!(said.message(), format!("a payload of 67108865 bytes is too large for queue '{queue}'"));
        assert!(said.hint().is_some());
    }
    assert_eq!(queue.stats().await.expect("counted").messages, 1, "only what fits");
}

/// A table stores a payload that repeats itself in a fiftieth of its size or less.
#[tokio::test(flavor = "multi_thread")]
async fn compressed_payload_counts_with_its_full_size() {
    let sql = connect(&database().await).await;
    let stored = "select trunkline.create_queue('t', 'text'), trunkline.create_queue('b', 'bytea');
        create table stored as select n, repeat('x', n) as t, convert_to(repeat('x', n), 'UTF8') as b
        from unnest(array[300000, 67108864, 67108865]) n";
    sql.batch_execute(stored).await.expect("stored");
    let largest = "select max(pg_column_size(t) + pg_column_size(b)) < 4000000 from stored";
    assert!(sql.query_one(largest, &[]).await.expect("measured").get::<_, bool>(0), "they are compressed");
    for queue in ["t", "b"] {
        for options in ["", ", delay => '1 hour'"] {
            let call = format!("select trunkline.enqueue('{queue}', {queue}{options}) from stored where n");
            let enqueued = sql.execute(&format!("{call} <= 67108864"), &[]).await.expect("they fit");
            assert_eq!(enqueued, 2, "{call}");
            let error = sql.execute(&format!("{call} > 67108864"), &[]).await.expect_err("too large");
            let said = error.as_db_error().expect("the server's");
            assert_eq!(said.message(), format!("a payload of 67108865 bytes is too large for queue '{queue}'"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_payload_fails_its_own_caller_only() {
    let Place { db, queue, sql, .. } = place::<i64>(Settings::new("int8")).await;
    for name in ["t", "j"] {
        db.create_queue(name, &Settings::new(["text", "jsonb"][usize::from(name == "j")])).await.expect("created");
    }
    let text = db.queue::<String>("t").await.expect("opened");
    let json = db.queue::<Json<String>>("j").await.expect("opened");
    sql.batch_execute("alter table trunkline.queue_q add constraint no_minus check (0 <= all (payload))")
        .await
        .expect("the user's own check");

    let is_bad = |nr: i64| [0, 13, 500, 501, 1023].contains(&nr);
    let (mut kept, mut failed) = (BTreeMap::new(), [0; 3]);
    let outcomes = join_all((0..1024).map(|nr| {
        let (queue, text, json) = (&queue, &text, &json);
        async move {
            let written = if is_bad(nr) { format!("{nr}\0") } else { nr.to_string() };
            let number = if is_bad(nr) { -nr - 1 } else { nr };
            (nr, queue.enqueue(number).await, text.enqueue(&written).await, json.enqueue(Json(written)).await)
        }
    }))
    .await;
    for (nr, number, text, json) in outcomes {
        for (at, outcome) in [number, text, json].into_iter().enumerate() {
            match outcome {
                Ok(enqueued) => assert_eq!(kept.insert((at, enqueued.id()), nr), None, "an id for each"),
                Err(error) => {
                    assert!(is_bad(nr) && error.is_bad_payload(), "{nr}: {error}");
                    assert!(error.to_string().contains(["no_minus", "NUL", "Unicode"][at]), "{error}");
                    failed[at] += 1;
                }
            }
        }
    }
    assert_eq!(failed, [5; 3], "the bad ones");
    let mut stored = BTreeMap::new();
    stored.extend(queue.take(2000).await.expect("taken").iter().map(|got| ((0, got.id), got.payload)));
    let number = |text: &str| text.parse::<i64>().expect("a good one");
    stored.extend(text.take(2000).await.expect("taken").iter().map(|got| ((1, got.id), number(&got.payload))));
    stored.extend(json.take(2000).await.expect("taken").iter().map(|got| ((2, got.id), number(&got.payload.0))));
    assert_eq!(stored, kept, "every other caller's message, under its id");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_queue_names_are_refused_and_quoted_ones_work() {
    let db = db().await;
    let long = "a".repeat(49);
    for name in ["", "Emails", &long, "a\"b", "a'b", "größe", "1a", "a b", "a;b", ".", "-a", "a\n"] {
        let error = db.create_queue(name, &Settings::new("text")).await.expect_err(name);
        assert_eq!(code(&error), "42602", "{name:?}: {error}");
        assert!(error.to_string().contains("1 to 48 characters"), "{error}");
        assert!(db.queue::<String>(name).await.expect_err(name).is_no_queue());
        assert!(db.drop_queue(name).await.expect_err(name).is_no_queue());
    }
    assert_eq!(code(&db.create_queue("a\0b", &Settings::new("text")).await.expect_err("NUL")), "22021");
    assert_eq!(db.list_queues().await.expect("listed"), []);

    let names = ["a.b-c", "select", "many", "a", "queue", "type", &"z".repeat(48)];
    for name in names {
        db.create_queue(name, &Settings::new("text")).await.expect(name);
        let queue = db.queue::<String>(name).await.expect(name);
        let mut consumer = queue.consumer(Wait::Notify);
        let waiter = tokio::spawn(async move { timeout(SOON, consumer.lease(2)).await });
        let id = queue.enqueue(name.to_owned()).await.expect(name).id();
        let got = waiter.await.expect("no panic").expect("in time").expect(name);
        assert_eq!((got[0].id, &*got[0].payload), (id, name));
        queue.archive(&got).await.expect(name);
        assert_eq!(queue.archived(0, 9).await.expect(name).len(), 1);
    }
    for name in names {
        db.drop_queue(name).await.expect(name);
    }
    db.create_queue("last", &Settings::new("text")).await.expect("created");
    let ids = db
        .queue::<String>("last")
        .await
        .expect("opened")
        .enqueue_many(&["a".to_owned()])
        .await
        .expect("enqueued")
        .ids();
    assert_eq!(ids.len(), 1, "what all queues share is still there");
}

#[tokio::test(flavor = "multi_thread")]
async fn none_gives_none_and_a_billion_gives_all() {
    let Place { queue, mut sql, db: _db, .. } = place::<i64>(Settings::new("int8").max_batch(7)).await;
    for n in [1_000_000_000, usize::MAX] {
        let ids = queue.enqueue_many(&(0..20).collect::<Vec<_>>()).await.expect("enqueued").ids();
        assert_eq!(queue.take(0).await.expect("none"), []);
        assert_eq!(queue.lease(0).await.expect("none"), []);
        assert_eq!(queue.peek(0).await.expect("none"), []);
        assert_eq!(queue.consumer(Wait::Notify).take(0).await.expect("at once"), []);
        assert_eq!(queue.peek(n).await.expect("peeked").len(), 20);
        let transaction = sql.transaction().await.expect("begun");
        assert_eq!(queue.take_in(&transaction, 0).await.expect("none"), []);
        assert_eq!(queue.take_in(&transaction, n).await.expect("all").len(), 20);
        transaction.rollback().await.expect("rolled back");
        let leased = queue.lease(n).await.expect("all");
        assert_eq!(leased.iter().map(|message| message.id).collect::<Vec<_>>(), ids);
        queue.release(&leased).await.expect("released");
        assert_eq!(queue.take(n).await.expect("all").len(), 20);
        assert_eq!(queue.dead_letters(0, n).await.expect("none"), []);
        assert_eq!(queue.archived(0, n).await.expect("none"), []);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_types_and_settings_out_of_bounds_are_explained() {
    let db = db().await;
    let settings = Settings::new("int8");
    db.create_queue("q", &settings).await.expect("created");
    db.create_queue("q", &settings).await.expect("the same again");
    let error = db.queue::<String>("q").await.expect_err("wrong");
    assert!(
        error.is_wrong_type() && error.to_string().contains("int8") && error.to_string().contains("String"),
        "{error}"
    );
    for other in [settings.clone().max_attempts(11), settings.clone().max_batch(9), Settings::new("int4")] {
        assert_eq!(code(&db.create_queue("q", &other).await.expect_err("another")), "42710");
    }
    assert_eq!(code(&db.create_queue("n", &Settings::new("nonsense")).await.expect_err("no type")), "42704");
    let year = Duration::from_secs(365 * 86_400);
    for bad in [
        settings.clone().max_attempts(0),
        settings.clone().max_batch(0),
        settings.clone().max_batch(1025),
        settings.clone().lease(Duration::ZERO),
        settings.clone().lease(year + Duration::from_secs(1)),
        settings.clone().lease(Duration::MAX),
    ] {
        let error = db.create_queue("n", &bad).await.expect_err("out of bounds");
        assert!(["22023", "22008"].contains(&&*code(&error)), "{bad:?}: {error}");
    }
    for too_large in [settings.clone().max_attempts(1 << 31), settings.clone().max_batch(u32::MAX)] {
        let error = db.create_queue("n", &too_large).await.expect_err("out of bounds").to_string();
        assert!(error.contains("can be at most 2147483647"), "{error}");
    }
    let edge = settings.max_attempts(i32::MAX.unsigned_abs()).max_batch(1).lease(year);
    db.create_queue("edge", &edge).await.expect("in bounds");
    assert_eq!(db.describe_queue("edge").await.expect("described").max_attempts, i32::MAX.unsigned_abs());
    assert_eq!(db.list_queues().await.expect("listed").len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn delays_and_leases_out_of_bounds_change_nothing() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    for delay in [Duration::MAX, Duration::from_secs(36_500 * 86_400 + 1)] {
        for error in [
            queue.enqueue(Draft::new(1).after(delay)).await.expect_err("endless"),
            queue.enqueue_many([Draft::new(1).after(delay)]).await.expect_err("endless"),
        ] {
            assert!(error.to_string().contains("36,500"), "{error}");
        }
    }
    queue.enqueue(Draft::new(1).after(Duration::ZERO)).await.expect("at once");
    for lease in [Duration::ZERO, Duration::from_secs(366 * 86_400), Duration::MAX] {
        let error = queue.lease(Dequeue::up_to(1).lease_for(lease)).await.expect_err("out of bounds");
        assert!(["22023", "22008"].contains(&&*code(&error)), "{lease:?}: {error}");
    }
    let leased = queue.lease(1).await.expect("leased");
    assert_eq!(leased[0].attempt, 1, "the others charged nothing");
    for error in [
        queue.extend(&leased, Duration::ZERO).await.expect_err("no lease"),
        queue.extend(&leased, Duration::MAX).await.expect_err("endless"),
        queue.retry(&leased, Duration::MAX, "").await.expect_err("endless"),
    ] {
        assert!(error.to_string().contains("365 days"), "{error}");
    }
    for call in [
        "enqueue('q', 1::bigint, '-1 s')",
        "enqueue('q', 1::bigint, null)",
        "enqueue('q', 1::bigint, '36501 days')",
        "lease('q', 1, '0')",
        "lease('q', 1, '-1 s')",
        "lease('q', 1, '366 days')",
        "lease('q', -1)",
        "take('q', null)",
        "extend('q', 1024, 1, null)",
        "retry('q', 1024, 1, '-1 s')",
    ] {
        let error = sql.execute(&format!("select trunkline.{call}"), &[]).await.expect_err(call);
        let error = error.as_db_error().expect("the server's");
        assert!(error.code().code() == "22023" && error.hint().is_some(), "{call}: {error}");
    }
    queue.ack(&leased).await.expect("still held");
    assert_eq!(queue.stats().await.expect("counted").messages, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn sequence_behind_its_table_is_not_blamed_on_the_payload() {
    let Place { queue, sql, .. } = place::<i64>(Settings::new("int8")).await;
    let id = queue.enqueue(1).await.expect("enqueued").id();
    let set_back = "select setval('trunkline.id_q', $1, false)";
    for many in [true, false] {
        sql.execute(set_back, &[&id]).await.expect("set back");
        let error = match many {
            true => queue.enqueue_many(&[2]).await.expect_err("it collides"),
            false => queue.enqueue(3).await.expect_err("it collides"),
        };
        let text = error.to_string();
        assert!(code(&error) == "23505" && !error.is_bad_payload(), "{text}");
        assert!(text.contains("behind its table") && text.contains("trunkline.repair_sequence('q')"), "{text}");
    }
    assert_eq!(queue.take(9).await.expect("taken").len(), 1, "nothing is lost, and nothing was stored");
}

/// A user's trigger makes the server skip the row without an error.
#[tokio::test(flavor = "multi_thread")]
async fn enqueue_that_a_trigger_skips_fails_as_not_stored() {
    let Place { queue, mut sql, db, .. } = place::<i64>(Settings::new("int8").max_batch(1)).await;
    let passes_over = "create function public.pass_over() returns trigger language plpgsql as
                       $$ begin return case when new.payload[1] = 13 then null else new end; end $$;
                       create trigger pass_over before insert on trunkline.queue_q
                       for each row execute function public.pass_over()";
    sql.batch_execute(passes_over).await.expect("created");
    let not_stored = |error: Error| assert!(error.to_string().contains("a trigger or a rule"), "{error}");
    let one = timeout(SOON, queue.enqueue(13)).await.expect("an answer").expect_err("passed over");
    assert!(!one.is_outcome_unknown(), "{one}");
    not_stored(one);
    not_stored(queue.enqueue_many(&[13]).await.expect_err("passed over"));
    not_stored(queue.enqueue_many(&vec![13; 100]).await.expect_err("passed over"));
    not_stored(queue.send_direct(13).await.expect_err("passed over"));
    let transaction = sql.transaction().await.expect("begun");
    not_stored(queue.enqueue_in(&transaction, 13).await.expect_err("passed over"));
    transaction.rollback().await.expect("rolled back");
    let transaction = sql.transaction().await.expect("begun");
    not_stored(queue.enqueue_many_in(&transaction, &[1, 13]).await.expect_err("passed over"));
    transaction.rollback().await.expect("rolled back");
    let transaction = db.begin().await.expect("begun");
    let sent = queue.send_enqueue_many(&transaction, &[1, 13]).await.expect("sent");
    not_stored(sent.await.expect_err("passed over"));
    transaction.rollback().await.expect("rolled back");
    assert_eq!(queue.stats().await.expect("counted").messages, 0);

    // The outcome of all calls is unknown, because the server does not report which of several rows
    // the trigger skipped.
    let error = queue.enqueue_many(&[1, 13, 2]).await.expect_err("one of them was passed over");
    assert!(error.is_outcome_unknown(), "{error}");
    not_stored(error);
    assert_eq!(queue.purge().await.expect("purged"), 2);
    let calls = join_all([1, 13, 2, 3, 4, 5, 6].map(|payload| queue.enqueue(payload)));
    let outcomes = timeout(SOON, calls).await.expect("answers");
    let ids: Vec<i64> = outcomes.iter().filter_map(|outcome| Some(outcome.as_ref().ok()?.id())).collect();
    let stored = queue.peek(10).await.expect("peeked");
    assert!(ids.iter().all(|id| stored.iter().any(|message| message.id == *id)), "{ids:?}");
    assert!(outcomes[1].is_err());
}

/// A comparison counts 30 days per month: this interval is more than zero, and no date makes it so.
#[tokio::test(flavor = "multi_thread")]
async fn delay_or_lease_that_ends_in_the_past_hides_no_message() {
    let past = "-1 year 360 days 1 second";
    for (kind, key, lease) in [
        ("", "", "lease"),
        (", priorities => 3", "", "lease"),
        (", partitions => 1", ", key => 'k'", "lease_partition"),
    ] {
        let sql = connect(&database().await).await;
        let create = format!("select trunkline.create_queue('q', 'int8'{kind})");
        sql.batch_execute(&create).await.expect("created");
        let ended = format!("create table ended as select id, attempt from trunkline.{lease}('q')");
        for (what, text) in [
            ("enqueue", format!("select trunkline.enqueue('q', 1::int8, delay => '{past}'{key})")),
            ("retry", format!("{ended}; select trunkline.retry('q', id, attempt, '{past}') from ended")),
            ("charge", format!("select trunkline.charge('q', id, attempt, '{past}') from trunkline.messages('q')")),
        ] {
            sql.batch_execute("select set_config('began.at', clock_timestamp()::text, false)").await.expect("set");
            sql.batch_execute(&text).await.expect("accepted");
            let due = "select due_at between current_setting('began.at')::timestamptz and clock_timestamp() from trunkline.messages('q')";
            assert!(sql.query_one(due, &[]).await.expect("read").get::<_, bool>(0), "{kind}: {what}");
        }
        for call in [
            format!("create_queue('other', 'int8', lease => '{past}')"),
            format!("alter_queue('q', lease => '{past}')"),
            format!("{lease}('q', 1, '{past}')"),
            format!("extend('q', 1024, 1, '{past}')"),
        ] {
            let call = format!("select trunkline.{call}");
            let error = sql.batch_execute(&call).await.expect_err(&call);
            assert_eq!(error.code().map(SqlState::code), Some("22023"), "{call}: {error:?}");
        }
    }
}
