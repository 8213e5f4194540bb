//! States that the database itself makes impossible for every session that writes.

use std::{collections::BTreeSet, time::Duration};

use tokio::spawn;
use tokio_postgres::error::SqlState;
use trunkline::{Db, Lease, Settings};

use crate::fixture::{Place, connect, database, dropped_under_way, eventually, place, run_out};

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_no_consumer_could_read_never_gets_in() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    for row in [
        "(now(), 0, '{}')",
        "(now(), -1, '{1}')",
        "(now(), 1025, array_fill(1, array[1025]))",
        "(now(), 1, '{}')",
        "(now(), 1, '{1,2}')",
        "(now(), 2, '{1}')",
        "(now(), 2, '{1,null}')",
        "(now(), 1, '[0:0]={1}')",
        "(now(), 2, '{{1},{2}}')",
        "('infinity', 1, '{1}')",
        "('-infinity', 1, '{1}')",
    ] {
        let insert = format!("insert into trunkline.queue_q (due_at, size, payload) values {row}");
        let error = sql.batch_execute(&insert).await.expect_err(row);
        assert_eq!(error.code().map(SqlState::code), Some("23514"), "{row}: {error:?}");
    }
    for metadata in ["'{{null},{null}}'", "'[0:0]={null}'", "array[null, null]::jsonb[]"] {
        let insert = format!("insert into trunkline.queue_q (size, payload, metadata) values (1, '{{1}}', {metadata})");
        sql.batch_execute(&insert).await.expect_err(metadata);
    }
    for park in ["infinity", "-infinity"] {
        queue.enqueue(1).await.expect("enqueued");
        let park = format!("update trunkline.queue_q set due_at = '{park}'");
        sql.batch_execute(&park).await.expect_err("an operator parks a message");
        assert_eq!(queue.take(9).await.expect("taken").len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_two_names_of_queues_exclude_each_other() {
    let url = database().await;
    let (db, sql) = (Db::connect(&url).await.expect("connected"), connect(&url).await);
    let names = "foo key_foo dead_foo deadkey_foo archive_foo key_dead_foo x apart_x lease_x do_lease_x pkey queue_pkey queue \
                 waiting floor template dropped granted migration bar id_bar due_bar age_bar messages_bar payload_bar";
    for name in names.split_whitespace() {
        db.create_queue(name, &Settings::new("int4[]")).await.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    for name in names.split_whitespace() {
        let queue = db.queue::<Vec<i32>>(name).await.expect("opened");
        let id = queue.enqueue(vec![1, 2]).await.expect("enqueued").id();
        let leased = queue.lease(2).await.expect("leased");
        assert_eq!((leased.len(), leased[0].id), (1, id), "{name}");
        queue.bury(&leased, "no").await.expect("buried");
        assert_eq!(queue.replay_all().await.expect("replayed"), 1, "{name}");
    }
    let absent = sql.query("select trunkline.stats('nkey')", &[]).await.expect_err("there is none");
    assert!(absent.to_string().contains("db error"), "{absent}");
    for name in names.split_whitespace() {
        db.drop_queue(name).await.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let left =
        "select count(*) from pg_class where relnamespace = 'trunkline'::regnamespace and relname ~ '_(foo|x|bar)$'";
    assert_eq!(sql.query_one(left, &[]).await.expect("counted").get::<_, i64>(0), 0);
}

/// A worker that was stopped for a long time has lost its lease, regardless of what happened to the
/// message in the meantime.
#[tokio::test(flavor = "multi_thread")]
async fn replayed_messages_and_recreated_queues_never_repeat_a_lease() {
    let Place { db, queue, sql, .. } = place::<String>(Settings::new("text").max_attempts(1)).await;
    queue.enqueue("a".to_owned()).await.expect("enqueued");
    let mut late: Vec<Lease> = Vec::new();
    for _ in 0..3 {
        late.extend(queue.lease(1).await.expect("leased").iter().map(trunkline::Message::lease));
        run_out(&sql).await;
        assert!(queue.lease(1).await.expect("its last attempt ran out").is_empty());
        assert_eq!(queue.replay_all().await.expect("replayed"), 1);
    }
    let holder = queue.lease(1).await.expect("leased");
    for lease in &late {
        let error = queue.ack([*lease]).await.expect_err("lost long ago");
        assert!(error.is_lease_lost(), "{error}");
    }
    queue.ack(&holder).await.expect("the one who holds it");

    // A replay in SQL also continues the attempt numbers.
    queue.enqueue("b".to_owned()).await.expect("enqueued");
    let first = queue.lease(1).await.expect("leased");
    queue.bury(&first, "no").await.expect("buried");
    sql.batch_execute("select trunkline.replay_all('q')").await.expect("replayed");
    let second = queue.lease(1).await.expect("leased");
    assert_eq!((second[0].id, second[0].attempt), (first[0].id, first[0].attempt + 1));
    assert!(queue.ack(&first).await.expect_err("lost").is_lease_lost());

    db.drop_queue("q").await.expect("dropped");
    db.create_queue("q", &Settings::new("text").max_attempts(1)).await.expect("created");
    let created = db.queue::<String>("q").await.expect("opened");
    assert!(created.enqueue("c".to_owned()).await.expect("enqueued").id() > second[0].id);
    let theirs = created.lease(1).await.expect("leased");
    assert!(queue.ack(&second).await.expect_err("another queue").is_lease_lost());
    created.ack(&theirs).await.expect("held");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_array_that_a_driver_may_pass_loses_a_message() {
    let url = database().await;
    let (db, sql) = (Db::connect(&url).await.expect("connected"), connect(&url).await);
    sql.batch_execute("create domain row_of as int4[]; create domain rows_of as row_of").await.expect("domains");
    for payload in ["int4[]", "row_of", "rows_of", "text"] {
        db.create_queue("q", &Settings::new(payload)).await.expect("created");
        for (call, texts) in [
            ("'[0:1]={\"{1,2}\",\"{3}\"}'::text[]", "{1,2} {3}"),
            ("'[5:6]={\"{1,2}\",\"{3}\"}'::text[]", "{1,2} {3}"),
            ("array['{1,2}', '{3}']", "{1,2} {3}"),
            ("'{\"{1,2}\",\"{3}\"}'", "{1,2} {3}"),
            ("'{}'", ""),
            ("'{}'::text[]", ""),
        ] {
            let enqueue = format!("select count(*)::int from trunkline.enqueue_many('q', {call})");
            let stored: i32 =
                sql.query_one(&enqueue, &[]).await.unwrap_or_else(|error| panic!("{payload} {call}: {error:?}")).get(0);
            let found = "select string_agg(payload, ' ' order by id), count(*)::int from trunkline.take('q', 9)";
            let row = sql.query_one(found, &[]).await.unwrap_or_else(|error| panic!("{payload}: {error:?}"));
            assert_eq!(
                (row.get::<_, Option<&str>>(0).unwrap_or_default(), row.get::<_, i32>(1)),
                (texts, stored),
                "{payload} {call}"
            );
        }
        db.drop_queue("q").await.expect("dropped");
    }
    db.create_queue("q", &Settings::new("int4")).await.expect("created");
    sql.batch_execute("select trunkline.enqueue_many('q', '[7:8]={1,2}'::int4[])").await.expect("enqueued");
    assert_eq!(db.queue::<i32>("q").await.expect("opened").take(9).await.expect("taken").len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_may_change_how_times_and_texts_are_written() {
    let url = database().await;
    let (db, sql) = (Db::connect(&url).await.expect("connected"), connect(&url).await);
    db.create_queue("q", &Settings::new("text")).await.expect("created");
    for setting in [
        "set datestyle = 'SQL, DMY'",
        "set datestyle = 'SQL, MDY'; set timezone = '<FOO>-3'",
        "set datestyle = 'German'; set intervalstyle = 'sql_standard'",
        "set datestyle = 'ISO'; set extra_float_digits = -15",
        "set standard_conforming_strings = off; set escape_string_warning = off",
    ] {
        sql.batch_execute(setting).await.expect("set");
        sql.batch_execute("select trunkline.create_queue('other'); select trunkline.drop_queue('other')")
            .await
            .unwrap_or_else(|error| panic!("{setting}: {error:?}"));
        // Runs twice, so that the second round uses a floor that the session has computed.
        for _ in 0..2 {
            sql.batch_execute("select trunkline.enqueue('q', 'a'::text)").await.expect("enqueued");
            let found =
                || async { !sql.query("select * from trunkline.take('q')", &[]).await.expect(setting).is_empty() };
            eventually("it is found", found).await;
            let looked = "select clock_timestamp() > now() + interval '101 ms' from pg_sleep(0.102)";
            sql.query(looked, &[]).await.expect("the next look is due");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sequence_behind_its_tables_is_repaired() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    queue.enqueue_many(&(0..5000).collect::<Vec<i64>>()).await.expect("enqueued");
    let leased = queue.lease(1500).await.expect("leased");
    queue.bury(&leased[..1], "no").await.expect("buried");
    queue.archive(&leased[1400..1401]).await.expect("archived");
    let highest = "select max(id) from trunkline.messages('q')";
    let highest: i64 = sql.query_one(highest, &[]).await.expect("read").get(0);
    sql.batch_execute("select setval('trunkline.id_q', 1024)").await.expect("as a replica has it");
    let next: i64 = sql.query_one("select trunkline.repair_sequence('q')", &[]).await.expect("repaired").get(0);
    assert!(next > highest && next % 1024 == 0 && next - highest <= 1024, "{next} behind {highest}");
    assert_eq!(queue.enqueue(7).await.expect("enqueued").id(), next);
    let again: i64 = sql.query_one("select trunkline.repair_sequence('q')", &[]).await.expect("repaired").get(0);
    assert_eq!(again, next + 1024, "it never goes back");
}

#[tokio::test(flavor = "multi_thread")]
async fn repaired_sequence_gives_no_id_twice_while_producers_enqueue() {
    let Place { url, queue, sql, db: _db } = place::<i64>(Settings::new("int8")).await;
    let producing = spawn(async move {
        let mut ids = BTreeSet::new();
        for n in 0..2_000 {
            ids.insert(queue.enqueue(n).await.expect("enqueued").id());
        }
        ids.len()
    });
    let other = connect(&url).await;
    while !producing.is_finished() {
        for session in [&sql, &other] {
            session.batch_execute("select trunkline.repair_sequence('q')").await.expect("nothing to repair");
        }
    }
    assert_eq!(producing.await.expect("no panic"), 2_000);
}

/// A dropped take puts the message back unchanged: its attempts do not change.
#[tokio::test(flavor = "multi_thread")]
async fn message_put_back_keeps_its_attempts() {
    let Place { url, queue, sql, db: _db } = place::<i64>(Settings::new("int8").max_attempts(3)).await;
    queue.enqueue(1).await.expect("enqueued");
    for _ in 0..3 {
        let leased = queue.lease(1).await.expect("leased");
        queue.release(&leased).await.expect("released, uncharged");
    }
    let before = "select attempt || ' ' || released || ' ' || coalesce(error, 'null') from trunkline.queue_q";
    let before: String = sql.query_one(before, &[]).await.expect("read").get(0);
    let written: String = sql.query_one("select xmin::text from trunkline.queue_q", &[]).await.expect("read").get(0);
    // Drops the call while another session holds the row.
    dropped_under_way(&url, &sql, queue.take(1)).await;
    let back = "select 1 from trunkline.queue_q where xmin::text <> $1";
    eventually("it is back", || async { !sql.query(back, &[&written]).await.expect("read").is_empty() }).await;
    let after: String = sql
        .query_one("select attempt || ' ' || released || ' ' || coalesce(error, 'null') from trunkline.queue_q", &[])
        .await
        .expect("read")
        .get(0);
    assert_eq!(after, before);
    for _ in 0..3 {
        let leased = queue.lease(1).await.expect("leased");
        assert_eq!(leased.len(), 1, "three attempts are left");
        queue.retry(&leased, Duration::ZERO, "no").await.expect("held");
    }
    assert_eq!(queue.stats().await.expect("counted").dead, 1);
}

/// A role that may call the internal functions gains nothing by passing texts that are not verbs,
/// or numbers that are not counts.
#[tokio::test(flavor = "multi_thread")]
async fn internal_functions_splice_nothing_and_end() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    queue.enqueue_many(&[1, 2, 3]).await.expect("enqueued");
    for verb in ["ack_q\"(null, null, null) d, trunkline.purge('q') --", "ack'||trunkline.purge('q')||'", "nothing"] {
        for text in ["reason", "') from trunkline.purge('q') --"] {
            let settle = "select trunkline.settle($1, 'q', '{1024}', '{1}', null, $2)";
            let error = sql.execute(settle, &[&verb, &text]).await.expect_err("there is no such verb");
            assert_eq!(error.code().map(SqlState::code), Some("42883"), "{verb}: {error:?}");
        }
    }
    sql.batch_execute("set statement_timeout = '10s'").await.expect("set");
    for n in [0, -1, i32::MIN] {
        let cut = format!("select trunkline.do_cut_q({n}, '-infinity')");
        sql.batch_execute(&cut).await.unwrap_or_else(|error| panic!("{cut}: {error:?}"));
        for rows in [0, 1, 8] {
            let gather = format!("select (trunkline.do_gather_q({n}, {rows}, true, 0, '-infinity', 0)).got");
            let row = sql.query_one(&gather, &[]).await.unwrap_or_else(|error| panic!("{gather}: {error:?}"));
            assert_eq!(row.get::<_, i32>(0), 0, "{gather}");
        }
    }
    assert_eq!(queue.stats().await.expect("counted").due, 3, "and nothing has changed");
}
