//! Columns are added to a queue's table. A program sets them with an enqueue, and reads them.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use tokio_postgres::error::SqlState;
use trunkline::{Draft, Queue, Settings};

use crate::{
    drafts::WAYS,
    fixture::{Ids, Place, place},
};

const COLUMNS: &str =
    "alter table trunkline.queue_q add tenant text not null default 'none', add tags text[], add price numeric(8, 2),
    add at timestamptz, add doubled int generated always as (size * 2) stored";

/// Returns the tenants of these messages, ordered by id.
async fn tenants(queue: &Queue<i64>, ids: &[i64]) -> Vec<String> {
    let all: BTreeMap<_, _> = queue.columns(ids).await.expect("read").into_iter().collect();
    assert_eq!(all.len(), ids.len());
    ids.iter().map(|id| all[id]["tenant"].clone()).collect()
}

fn draft(nr: i64) -> Draft<i64> {
    let draft = Draft::new(nr).with("nr", nr.to_string());
    match nr % 3 {
        0 => draft,
        1 => draft.column("tenant", "acme"),
        _ => draft.column("tags", "{a,\"b c\"}").column("tenant", "globex"),
    }
}

fn tenant(nr: i64) -> &'static str {
    ["none", "acme", "globex"][nr as usize % 3]
}

#[tokio::test(flavor = "multi_thread")]
async fn values_are_stored_however_messages_are_enqueued() {
    for kind in ["plain", "laned", "keyed"] {
        let (keyed, laned) = (kind == "keyed", kind == "laned");
        let settings = Settings::new("int8");
        let settings = match kind {
            "laned" => settings.priorities(3),
            "keyed" => settings.partitions(4),
            _ => settings,
        };
        let Place { db, queue, sql, .. } = place::<i64>(settings).await;
        sql.batch_execute(COLUMNS).await.expect("added");
        let drafts = || {
            (0..30).map(|nr| match (keyed, laned) {
                (true, _) => draft(nr).key(format!("key {}", nr % 5)),
                (_, true) => draft(nr).priority((nr % 2) as u8),
                _ => draft(nr),
            })
        };
        for (way, enqueue) in WAYS {
            let ids = enqueue(db.clone(), queue.clone(), drafts().collect()).await;
            let expected: Vec<&str> = (0..30).map(tenant).collect();
            assert_eq!(tenants(&queue, &ids).await, expected, "{way}");
            for (nr, id) in ids.iter().enumerate() {
                let found = queue.find(*id).await.expect("read").expect("there");
                assert_eq!(found.payload, nr as i64, "{way}");
                assert_eq!(found.metadata.get("nr"), Some(&*nr.to_string()), "{way}");
                assert_eq!(found.key.as_deref(), keyed.then(|| format!("key {}", nr % 5)).as_deref(), "{way}");
                assert_eq!(found.priority, if laned { nr as u8 % 2 } else { 0 }, "{way}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_values_share_a_row_and_survive_a_death() {
    let Place { queue, sql, .. } = place::<i64>(Settings::new("int8").max_attempts(1)).await;
    sql.batch_execute(COLUMNS).await.expect("added");
    let all = join_all((0..300).map(|nr| queue.enqueue(draft(nr)))).await;
    let ids: Vec<i64> = all.into_iter().map(|one| one.expect("enqueued").id()).collect();
    assert_eq!(tenants(&queue, &ids).await, (0..300).map(tenant).collect::<Vec<_>>());
    let rows: i64 = sql.query_one("select count(*) from trunkline.queue_q", &[]).await.expect("read").get(0);
    assert!(rows <= 60, "300 messages are in {rows} rows");
    let many = queue.enqueue_many((300..900).map(draft)).await.expect("enqueued").ids();
    assert_eq!(tenants(&queue, &many).await, (300..900).map(tenant).collect::<Vec<_>>());
    let more: i64 = sql.query_one("select count(*) from trunkline.queue_q", &[]).await.expect("read").get(0);
    assert!(more - rows <= 6, "600 messages are in {} rows", more - rows);

    let leased = queue.lease(200).await.expect("leased");
    queue.bury(&leased[..100], "no use").await.expect("buried");
    queue.archive(&leased[100..]).await.expect("archived");
    let ids: Vec<i64> = leased.iter().map(|message| message.id).collect();
    let expected: Vec<&str> = leased.iter().map(|message| tenant(message.payload)).collect();
    assert_eq!(tenants(&queue, &ids).await, expected, "dead or archived");
    queue.replay_all().await.expect("replayed");
    assert_eq!(tenants(&queue, &ids).await, expected, "replayed");
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_many_types_come_back_as_texts() {
    let Place { queue, sql, .. } = place::<i64>(Settings::new("int8")).await;
    sql.batch_execute(COLUMNS).await.expect("added");
    let wanted = [
        ("at", "2026-03-04 12:00:00+00"),
        ("price", "12.30"),
        ("tags", "{a,\"b \\\\ \\\"c\"}"),
        ("tenant", "it's \\ é"),
    ];
    let draft = wanted.iter().fold(Draft::new(1), |draft, (name, text)| draft.column(*name, *text));
    let id = queue.enqueue(draft).await.expect("enqueued").id();
    let (found, columns) = queue.columns(&[5, id]).await.expect("read").pop().expect("there");
    let mut all: BTreeMap<&str, &str> = wanted.into();
    all.insert("doubled", "2");
    assert_eq!(found, id);
    assert_eq!(columns.iter().map(|(name, text)| (&**name, &**text)).collect::<BTreeMap<_, _>>(), all);
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_value_fails_only_its_own_call() {
    let Place { queue, sql, .. } = place::<i64>(Settings::new("int8").uniqueness(true)).await;
    sql.batch_execute(COLUMNS).await.expect("added");
    let refused = [
        (Draft::new(1).column("tenent", "acme"), "no column tenent that accepts values"),
        (Draft::new(1).column("payload", "{1}"), "no column payload that accepts values"),
        (Draft::new(1).column("doubled", "4"), "no column doubled that accepts values"),
        (Draft::new(1).column("price", "dear"), "invalid input syntax for type numeric"),
        (Draft::new(1).column("tenant", "acme").unique("k"), "unique key"),
    ];
    let good = join_all((0..99).map(|nr| queue.enqueue(draft(nr))));
    let bad = join_all(refused.iter().map(|(draft, _)| queue.enqueue(draft)));
    let (good, bad) = tokio::join!(good, bad);
    assert!(good.iter().all(Result::is_ok));
    for (error, (_, why)) in bad.into_iter().zip(&refused) {
        let error = error.expect_err(why).to_string();
        assert!(error.contains(why), "{error}, not {why}");
    }
    for (draft, why) in &refused {
        let error = queue.enqueue_many([&Draft::new(2), draft]).await.expect_err(why).to_string();
        assert!(error.contains("columns") || error.contains(why), "{error}, not {why}");
    }
    let mixed = queue.enqueue_many([draft(1), Draft::new(2).unique("k")]).await.expect_err("in one call");
    assert!(mixed.to_string().contains("apart from those with unique keys"), "{mixed}");
    assert_eq!(queue.stats().await.expect("counted").messages, 99, "the others, and nothing twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn direct_message_with_values_is_enqueued() {
    let Place { queue, sql, .. } = place::<i64>(Settings::new("int8")).await;
    sql.batch_execute(COLUMNS).await.expect("added");
    let id = queue.send_direct(draft(1)).await.expect("sent").id();
    assert_eq!(tenants(&queue, &[id]).await, ["acme"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn sql_functions_say_what_is_wrong() {
    let Place { sql, .. } = place::<i64>(Settings::new("int8")).await;
    sql.batch_execute(COLUMNS).await.expect("added");
    for (call, why) in [
        ("enqueue_many_with_columns('q', null, '{}')", "the payloads of queue 'q' are null"),
        ("enqueue_many_with_columns('q', '{{1},{2}}', '{}')", "an array of one dimension, not of 2"),
        ("enqueue_many_with_columns('q', '{1,null}', '{}')", "a payload of queue 'q' is null"),
        ("enqueue_many_with_columns('q', '{1}', '{}', metadata => '{}')", "1 payloads, but metadata for 0"),
        ("enqueue_many_with_columns('q', '{1}', '{}', keys => '{a}')", "queue 'q' has no keys"),
        ("enqueue_with_columns('q', '1', '{}', priority => 1)", "queue 'q' has no priority 1"),
        ("enqueue_with_columns('q', '1', '{}', '-1 s')", "a delay of -00:00:01 is out of bounds"),
        ("enqueue_with_columns('q', '1', null)", "columns must be a JSON object, not null"),
        ("enqueue_with_columns('q', '1', '[]')", "columns must be a JSON object, not []"),
        ("enqueue_with_columns('q', '1', '{\"tags\": [\"a\"]}')", "malformed array literal"),
        ("enqueue_with_columns('q', 'one', '{}')", "invalid input syntax for type bigint"),
        ("enqueue_with_columns('none', '1', '{}')", "there is no queue 'none'"),
        ("own_columns('none', '{1}')", "there is no queue 'none'"),
    ] {
        let error = sql.batch_execute(&format!("select trunkline.{call}")).await.expect_err(call);
        let error = error.as_db_error().expect("the server's").message().to_owned();
        assert!(error.contains(why), "{call}: {error}");
    }
    for (column, advice) in [
        ("id", "Pass columns that you added"),
        ("doubled", "Pass columns that you added"),
        ("", "Pass columns that you added"),
        ("missing", "alter table trunkline.queue_q add column missing TYPE"),
    ] {
        let call = format!("select trunkline.enqueue_with_columns('q', '1', '{{\"{column}\": 1}}')");
        let error = sql.batch_execute(&call).await.expect_err("no such column");
        let error = error.as_db_error().expect("the server's");
        let is_advised = error.hint().is_some_and(|hint| hint.contains(advice));
        assert!(*error.code() == SqlState::UNDEFINED_COLUMN && is_advised, "{column}: {error:?}");
    }
    let none = sql.query("select trunkline.enqueue_many_with_columns('q', '{}', '{}')", &[]).await.expect("nothing");
    assert!(none.is_empty());
}

/// A column that only queues of another kind have may be the user's.
#[tokio::test(flavor = "multi_thread")]
async fn a_column_is_reserved_only_in_queues_that_have_it() {
    let Place { db, queue, sql, .. } = place::<i64>(Settings::new("int8")).await;
    db.create_queue("ranked", &Settings::new("int8").priorities(3)).await.expect("created");
    db.create_queue("keyed", &Settings::new("int8").partitions(2)).await.expect("created");
    sql.batch_execute(
        "alter table trunkline.queue_q add place text, add lane text, add keys text, add line text;
         alter table trunkline.queue_ranked add place text, add keys text, add line text",
    )
    .await
    .expect("added");
    let values = r#"{"keys": "k", "lane": "l", "line": "m", "place": "Oslo"}"#;
    let drafted = Draft::new(1).column("place", "Oslo").column("lane", "l").column("keys", "k").column("line", "m");
    let id = queue.enqueue(drafted).await.expect("enqueued").id();
    let in_sql = format!("select trunkline.enqueue_with_columns('q', '2', '{values}')");
    let other: i64 = sql.query_one(&in_sql, &[]).await.expect("enqueued").get(0);
    let own = async || {
        let own = "select columns::text from trunkline.own_columns('q', $1)";
        let rows = sql.query(own, &[&[id, other].as_slice()]).await.expect("read");
        rows.iter().map(|row| row.get(0)).collect::<Vec<String>>()
    };
    assert_eq!(own().await, [values, values]);
    let leased = queue.lease(2).await.expect("leased");
    queue.bury(&leased[..1], "no").await.expect("held");
    queue.archive(&leased[1..]).await.expect("held");
    assert_eq!(own().await, [values, values]);
    assert_eq!(queue.replay_all().await.expect("replayed"), 1);
    assert_eq!(own().await, [values, values]);
    for (queue, reserved) in [("q", "due_at"), ("ranked", "lane"), ("keyed", "place"), ("keyed", "keys")] {
        let call =
            format!("select trunkline.enqueue_with_columns('{queue}', '1', '{{\"{reserved}\": \"1\"}}', key => null)");
        let error = sql.batch_execute(&call).await.expect_err(reserved);
        assert_eq!(error.code(), Some(&SqlState::UNDEFINED_COLUMN), "{call}: {error:?}");
    }
    let call = "select trunkline.own_columns('ranked', array[trunkline.enqueue_with_columns('ranked', '1', '{\"place\": \"Rome\"}')])::text";
    assert_eq!(sql.query_one(call, &[]).await.expect("read").get::<_, String>(0).matches("Rome").count(), 1);
}
