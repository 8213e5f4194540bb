//! Users add columns to a queue's table, and a message keeps its values wherever it moves.

use tokio_postgres::{Client, error::SqlState};
use trunkline::{Json, Settings};

use crate::fixture::{Place, connect, dropped_under_way, enqueued, eventually, place, superuser};

/// Columns with types that JSON cannot distinguish, or whose texts depend on settings.
const COLUMNS: &str = "add tenant text default 'nobody', add tags text[], add at timestamptz, add day date, add span interval,
    add ratio float8, add doc jsonb, add price numeric(8, 2), add code varchar(4), add \"odd, 'name'\" bit(3), add nothing int default 7,
    add slug slug default 's', add mood mood, add part part";
const TYPES: &str = "create domain slug as text not null check (value <> ''); create type mood as enum ('sad', 'glad');
    create type part as (nr int, name text)";
const VALUES: &str = "tenant = 'acme', tags = '[2:3]={a,\"b c\"}', at = '2026-03-04 12:00:00.000001+00', day = '2026-03-04',
    span = '-1 day -02:03', ratio = 0.1::float8 + 0.2::float8, doc = 'null', price = 12.30, code = 'ab', \"odd, 'name'\" = '101', nothing = null,
    slug = 'so \\ \"so\"', mood = 'glad', part = (1, null)";
/// Settings that change how a session prints values.
const ODD: &str = "set datestyle = 'German'; set intervalstyle = 'sql_standard'; set extra_float_digits = -15; set timezone = 'Asia/Tokyo'";

/// Returns all values of every row.
async fn values(sql: &Client) -> Vec<String> {
    let values = "select row(tenant, tags, at, day, span, ratio, doc, price, code, \"odd, 'name'\", nothing, slug, mood, part)::text
                  from trunkline.queue_q order by id";
    sql.query(values, &[]).await.expect("read").iter().map(|row| row.get(0)).collect()
}

async fn number(sql: &Client, query: &str) -> i64 {
    sql.query_one(query, &[]).await.unwrap_or_else(|error| panic!("{query}: {error:?}")).get(0)
}

/// Creates a queue with three messages in one row that has such columns.
async fn three(settings: Settings) -> (Place<i64>, Vec<i64>, String) {
    let place = place::<i64>(settings).await;
    place.sql.batch_execute(&format!("{TYPES}; alter table trunkline.queue_q {COLUMNS}")).await.expect("added");
    let ids = enqueued(&place.queue, 3).await;
    place.sql.batch_execute(&format!("update trunkline.queue_q set {VALUES}")).await.expect("set");
    let row = values(&place.sql).await;
    assert_eq!(row.len(), 1);
    (place, ids, row[0].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letter_keeps_own_columns_and_replays_with_them() {
    for (death, dead) in [
        ("select trunkline.retry('q', id, attempt) from trunkline.lease('q', 2)", 2),
        ("select trunkline.bury('q', id, attempt) from trunkline.lease('q', 2)", 2),
        ("select trunkline.charge('q', id, attempt) from trunkline.messages('q') limit 2", 2),
        ("select * from trunkline.lease('q', 3, '1 us'); select * from trunkline.take('q')", 3),
    ] {
        let (Place { url, queue, sql, db: _db }, _, row) = three(Settings::new("int8").max_attempts(1)).await;
        let odd = connect(&url).await;
        odd.batch_execute(ODD).await.expect("set");
        odd.batch_execute(death).await.unwrap_or_else(|error| panic!("{death}: {error:?}"));
        let kept = "select count(*) from trunkline.dead_q where own ->> 'tenant' = 'acme' and own ->> 'doc' = 'null'
                    and own -> 'nothing' = 'null'";
        assert_eq!(number(&sql, kept).await, dead, "{death}");
        assert!(values(&sql).await.iter().all(|rest| *rest == row), "{death}: the rest of the row");
        assert_eq!(queue.replay_all().await.expect("replayed"), dead as usize, "{death}");
        assert_eq!(queue.stats().await.expect("counted").messages, 3);
        let back = values(&sql).await;
        assert!(back.len() >= dead as usize && back.iter().all(|back| *back == row), "{death}: {back:?}, not {row}");
        assert_eq!(queue.take(9).await.expect("taken").len(), 3, "{death}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_archive_keeps_them() {
    let (Place { queue, sql, db: _db, .. }, ids, row) = three(Settings::new("int8")).await;
    let leased = queue.lease(3).await.expect("leased");
    queue.archive(&leased[1..2]).await.expect("held");
    let kept = "select count(*) from trunkline.archive_q where own ->> 'tenant' = 'acme' and own ->> 'tags' = '[2:3]={a,\"b c\"}'";
    assert_eq!(number(&sql, kept).await, 1);
    assert_eq!(queue.archived(0, 9).await.expect("read")[0].id, ids[1]);
    assert_eq!(values(&sql).await, [row.clone(), row], "before it and behind it");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_and_reschedule_keep_the_own_columns() {
    let (Place { queue, sql, db: _db, .. }, ids, row) = three(Settings::new("int8")).await;
    assert_eq!(queue.reschedule(&ids[2..], std::time::Duration::from_secs(60)).await.expect("moved"), ids[2..]);
    assert_eq!(queue.cancel(&ids[1..2]).await.expect("cancelled"), ids[1..2]);
    assert_eq!(values(&sql).await, [row.clone(), row]);
}

#[tokio::test(flavor = "multi_thread")]
async fn abandoned_take_is_put_back_with_own_columns() {
    let (Place { url, queue, sql, db: _db }, _, row) = three(Settings::new("int8")).await;
    let written = "select count(*) from trunkline.queue_q where xmin::text <> $1";
    let before: String = sql.query_one("select xmin::text from trunkline.queue_q", &[]).await.expect("read").get(0);
    dropped_under_way(&url, &sql, queue.take(9)).await;
    eventually("it was taken and put back", || async {
        sql.query_one(written, &[&before]).await.expect("read").get::<_, i64>(0) == 1
    })
    .await;
    assert_eq!(values(&sql).await, [row]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_cannot_be_read_is_charged_with_them() {
    for in_transaction in [false, true] {
        let Place { url, queue, sql, db: _db } = place::<Json<u64>>(Settings::new("jsonb")).await;
        sql.batch_execute(
            "alter table trunkline.queue_q add tenant text default 'nobody';
             select trunkline.enqueue_many('q', array['1', '\"x\"', '3']); update trunkline.queue_q set tenant = 'acme'",
        )
        .await
        .expect("enqueued");
        if in_transaction {
            let mut own = connect(&url).await;
            let transaction = own.transaction().await.expect("begun");
            assert_eq!(queue.take_in(&transaction, 9).await.expect("taken").len(), 2);
            transaction.commit().await.expect("committed");
        } else {
            assert_eq!(queue.take(9).await.expect("taken").len(), 2);
        }
        let charged = "select count(*) from trunkline.queue_q where attempt = 1 and tenant = 'acme'";
        eventually("it is charged", || async { number(&sql, charged).await == 1 }).await;
    }
}

/// Sessions with cached plans detect the change, too, and so does a session whose snapshot is older
/// than the column.
#[tokio::test(flavor = "multi_thread")]
async fn a_column_that_is_added_or_dropped_later_is_noticed() {
    let Place { url, queue, sql, db: _db } = place::<i64>(Settings::new("int8")).await;
    enqueued(&queue, 100).await;
    let old = connect(&url).await;
    let archive = "select trunkline.archive('q', id, attempt) from trunkline.lease('q')";
    let bury = "select trunkline.bury('q', id, attempt) from trunkline.lease('q')";
    let both = async || {
        let leased = queue.lease(2).await.expect("leased");
        queue.archive(&leased[..1]).await.expect("held");
        queue.bury(&leased[1..], "no").await.expect("held");
        old.batch_execute(archive).await.expect("archived");
        old.batch_execute(bury).await.expect("buried");
    };
    // Counts the ended messages that have such columns, and the ended messages that do not.
    let kept = async || {
        let of = |condition: &str| {
            format!(
                "select (select count(*) from trunkline.archive_q where own {condition})
                          + (select count(*) from trunkline.dead_q where own {condition})"
            )
        };
        (number(&sql, &of("= '{\"tenant\": \"acme\"}'")).await, number(&sql, &of("is null")).await)
    };
    for _ in 0..7 {
        both().await; // after seven runs, the session has cached all plans
    }
    assert_eq!(kept().await, (0, 28));
    old.batch_execute("begin isolation level repeatable read; select 1 from trunkline.queue").await.expect("held");
    sql.batch_execute("alter table trunkline.queue_q add tenant text default 'acme'").await.expect("added");
    old.batch_execute(archive).await.expect("in an old snapshot");
    old.batch_execute("commit").await.expect("committed");
    assert_eq!(kept().await, (1, 28));
    both().await;
    assert_eq!(kept().await, (5, 28));
    sql.batch_execute("alter table trunkline.queue_q drop tenant").await.expect("dropped");
    both().await;
    assert_eq!(kept().await, (5, 32));
    // A dead message that has a value for a dropped column is replayed without that value.
    assert_eq!(queue.replay_all().await.expect("replayed"), 18);
}

#[tokio::test(flavor = "multi_thread")]
async fn unfitting_value_is_named_and_can_be_corrected() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    sql.batch_execute(
        "alter table trunkline.queue_q add tenant text default 'acme', add twice int generated always as (size * 2) stored,
             add nr bigint generated always as identity",
    )
    .await
    .expect("added");
    let ids = enqueued(&queue, 2).await;
    let leased = queue.lease(2).await.expect("leased");
    queue.bury(&leased, "no").await.expect("held");
    sql.batch_execute(
        "update trunkline.dead_q set own = own || '{\"tenant\": \"7\"}' where id = (select min(id) from trunkline.dead_q);
         alter table trunkline.queue_q alter tenant drop default, alter tenant type int using 0, alter tenant set default 5",
    )
    .await
    .expect("changed");
    let error = queue.replay_all().await.expect_err("acme is no number");
    assert_eq!(error.sqlstate(), Some(&SqlState::INVALID_TEXT_REPRESENTATION), "{error}");
    let text = error.to_string();
    assert!(text.contains(&format!("dead letter {} of queue q", ids[1])) && text.contains("acme"), "{text}");
    assert_eq!(queue.stats().await.expect("counted").dead, 2, "all or nothing");
    let error = sql.batch_execute("select trunkline.replay_all('q')").await.expect_err("acme is no number");
    assert!(error.as_db_error().and_then(|error| error.hint()).is_some_and(|hint| hint.contains("dead_q, column own")));

    sql.batch_execute("update trunkline.dead_q set own = own - 'tenant' where own ->> 'tenant' = 'acme'")
        .await
        .expect("out");
    assert_eq!(queue.replay_all().await.expect("replayed"), 2);
    let back = "select count(*) from trunkline.queue_q where twice = 2 and nr is not null and (id, tenant) in (($1, 7), ($2, 5))";
    let back: i64 = sql.query_one(back, &[&ids[0], &ids[1]]).await.expect("read").get(0);
    assert_eq!(back, 2, "the value that fits, and the column's default");
}

/// The plans are the same as for a queue that has never had such columns.
#[tokio::test(flavor = "multi_thread")]
async fn a_queue_without_such_columns_pays_nothing() {
    let Place { url, queue, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    enqueued(&queue, 100).await;
    let admin = superuser(&url).await;
    admin.batch_execute("set track_functions = 'all'; begin").await.expect("begun");
    let calls =
        "select coalesce(sum(calls), 0)::int8 from pg_stat_xact_user_functions where funcname in ('own', 'do_own_q')";
    let ends = "select trunkline.archive('q', id, attempt) from trunkline.lease('q', 10);
                select trunkline.bury('q', id, attempt) from trunkline.lease('q', 10)";
    let mut counted = Vec::new();
    for before in ["", "", "alter table trunkline.queue_q add tenant text"] {
        admin.batch_execute(&format!("{before}; {ends}")).await.expect("ended");
        counted.push(number(&admin, calls).await);
    }
    assert_eq!(counted[0], counted[1], "asked once a plan");
    assert!(counted[2] >= counted[1] + 20, "and with such a column once a row: {counted:?}");
    admin.batch_execute("rollback").await.expect("rolled back");
}

#[tokio::test]
async fn replay_shortens_no_value_for_a_column_that_became_shorter() {
    for (settings, key) in [(Settings::new("int8"), ""), (Settings::new("int8").partitions(2), ", key => 'a'")] {
        let Place { queue, sql, .. } = place::<i64>(settings).await;
        sql.batch_execute("alter table trunkline.queue_q add tag text").await.expect("added");
        sql.batch_execute(&format!("select trunkline.enqueue('q', 7::int8{key})")).await.expect("enqueued");
        sql.batch_execute("update trunkline.queue_q set tag = 'too long'").await.expect("tagged");
        let id = queue.peek(1).await.expect("read")[0].id;
        let lease = if key.is_empty() { "lease('q')" } else { "lease_partition('q')" };
        sql.batch_execute(&format!("select trunkline.bury('q', l.id, l.attempt, 'dead') from trunkline.{lease} l"))
            .await
            .expect("buried");
        sql.batch_execute("create domain short as varchar(3); alter table trunkline.queue_q alter tag type short")
            .await
            .expect("altered");
        let error = sql.query("select trunkline.replay('q', array[$1::bigint])", &[&id]).await.expect_err("too long");
        assert_eq!(error.code().map(tokio_postgres::error::SqlState::code), Some("22001"), "{error:?}");
        assert_eq!(queue.stats().await.expect("counted").dead, 1);
    }
}

/// A drained server refuses every message, so no value of a dead letter is to blame.
#[tokio::test(flavor = "multi_thread")]
async fn replay_on_a_drained_server_blames_no_dead_letter() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8").priorities(2)).await;
    enqueued(&queue, 1).await;
    let leased = queue.lease(1).await.expect("leased");
    queue.bury(&leased, "no").await.expect("held");
    sql.batch_execute("alter table trunkline.queue_q add constraint drained check (false)").await.expect("closed");
    let error = queue.replay_all().await.expect_err("it takes no messages");
    assert!(error.is_drained() && !error.to_string().contains("dead letter"), "{error}");
    let other = "alter table trunkline.queue_q drop constraint drained, add constraint no_singles check (size > 1)";
    sql.batch_execute(other).await.expect("opened");
    let error = sql.batch_execute("select trunkline.replay_all('q')").await.expect_err("its row has one message");
    let error = error.as_db_error().expect("the server's");
    assert!(error.message().contains("dead letter") && error.constraint() == Some("no_singles"), "{error:?}");
    assert_eq!(queue.stats().await.expect("counted").dead, 1);
}
