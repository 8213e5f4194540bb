//! Tests the branches of `trunkline.enqueue`, which are generated and reach the function of a
//! queue. There is one branch per queue and no other branch.

use tokio_postgres::{Client, error::SqlState};
use trunkline::Db;

use crate::fixture::{connect, database};

async fn migrated() -> (String, Client) {
    let url = database().await;
    Db::connect(&url).await.expect("connected");
    let sql = connect(&url).await;
    (url, sql)
}

/// Returns the names of the queues that have a branch, in the order of the branches.
async fn branches(sql: &Client) -> Vec<String> {
    let found = "select coalesce((
                     select array_agg(m[1] order by nr)
                     from regexp_matches(p.prosrc, 'queue operator\\(pg_catalog.=\\) ''([^'']+)''', 'g') with ordinality r(m, nr)), '{}')
                 from pg_proc p where p.pronamespace = 'trunkline'::regnamespace and p.proname = 'enqueue'";
    let found = sql.query(found, &[]).await.expect("read");
    let [one, other]: [Vec<String>; 2] =
        found.iter().map(|row| row.get(0)).collect::<Vec<_>>().try_into().expect("two variants");
    assert_eq!(one, other);
    one
}

async fn enqueue(sql: &Client, queue: &str) -> Result<i64, tokio_postgres::Error> {
    sql.query_one("select trunkline.enqueue($1, 'x'::text)", &[&queue]).await.map(|row| row.get(0))
}

#[tokio::test]
async fn each_queue_gets_its_own_messages() {
    let (_, sql) = migrated().await;
    assert_eq!(branches(&sql).await, Vec::<String>::new());
    // Uses names that need more than two groups of sixteen, and that a linguistic collation sorts
    // in a different order than bytes.
    let names: Vec<String> =
        (0..35).map(|nr| format!("{}{}q{nr}", ["a", "b"][nr % 2], ["_", ".", "-", "0"][nr % 4])).collect();
    for name in &names {
        sql.execute("select trunkline.create_queue($1, 'text')", &[name]).await.expect("created");
    }
    let mut sorted = names.clone();
    sorted.sort();
    assert_eq!(branches(&sql).await, sorted);
    for name in &names {
        enqueue(&sql, name).await.expect("enqueued");
        let rows = sql.query_one(&format!("select count(*) from trunkline.\"queue_{name}\""), &[]).await.expect("read");
        assert_eq!(rows.get::<_, i64>(0), 1, "{name}");
    }
    sql.execute("select trunkline.drop_queue($1)", &[&names[7]]).await.expect("dropped");
    let gone = enqueue(&sql, &names[7]).await.expect_err("there is no such queue");
    assert_eq!(gone.code(), Some(&SqlState::UNDEFINED_TABLE), "{gone}");
    assert!(!branches(&sql).await.contains(&names[7]));
}

#[tokio::test]
async fn queue_created_beside_an_open_transaction_works_without_a_branch() {
    let (url, sql) = migrated().await;
    let other = connect(&url).await;
    other.batch_execute("begin; select trunkline.create_queue('first', 'text')").await.expect("created");
    sql.batch_execute("select trunkline.create_queue('second', 'text')").await.expect("created");
    enqueue(&sql, "second").await.expect("enqueued by EXECUTE");
    other.batch_execute("commit").await.expect("committed");
    enqueue(&sql, "first").await.expect("enqueued");
    assert_eq!(branches(&sql).await, ["first"]);
    sql.batch_execute("select trunkline.create_queue('third', 'text')").await.expect("created");
    assert_eq!(branches(&sql).await, ["first", "second", "third"]);
}

#[tokio::test]
async fn rolled_back_queue_leaves_no_branch() {
    let (_, sql) = migrated().await;
    sql.batch_execute("begin; select trunkline.create_queue('q', 'text')").await.expect("created");
    enqueue(&sql, "q").await.expect("enqueued");
    sql.batch_execute("rollback").await.expect("rolled back");
    assert_eq!(branches(&sql).await, Vec::<String>::new());
    assert_eq!(enqueue(&sql, "q").await.expect_err("gone").code(), Some(&SqlState::UNDEFINED_TABLE));
}

#[tokio::test]
async fn options_are_kept_with_a_branch_and_without_one() {
    let (url, sql) = migrated().await;
    let other = connect(&url).await;
    sql.batch_execute("select trunkline.create_queue('with', 'text', priorities => 3)").await.expect("created");
    other.batch_execute("begin; select trunkline.create_queue('open', 'text')").await.expect("created");
    sql.batch_execute("select trunkline.create_queue('without', 'text', priorities => 3)").await.expect("created");
    assert_eq!(branches(&sql).await, ["with"]);
    for queue in ["with", "without"] {
        let call =
            "select trunkline.enqueue($1, 'x'::text, priority => 2, delay => '1 hour', metadata => '{\"a\": \"b\"}')";
        sql.execute(call, &[&queue]).await.expect("enqueued");
        // A month that counts as 30 days in a comparison may have 28.
        sql.execute("select trunkline.enqueue($1, 'y'::text, delay => '1 month -30 days')", &[&queue])
            .await
            .expect("enqueued");
        let stored = format!(
            "select lane, due_at > now() + interval '59 minutes', due_at > enqueued_at - interval '1 second', metadata[1]->>'a', payload[1]
             from trunkline.queue_{queue} order by id"
        );
        let rows = sql.query(&stored, &[]).await.expect("read");
        let first = (rows[0].get(0), rows[0].get(1), rows[0].get(2), rows[0].get(3), rows[0].get(4));
        assert_eq!(first, (2_i16, true, true, Some("b"), "x"), "{queue}");
        let second = (rows[1].get(0), rows[1].get(2), rows[1].get(3), rows[1].get(4));
        assert_eq!(second, (0_i16, true, None::<&str>, "y"), "{queue}");
        for (option, word) in
            [("priority => 3", "priority"), ("delay => '-1 s'", "delay"), ("metadata => '[]'", "metadata")]
        {
            let refused = sql.execute(&format!("select trunkline.enqueue($1, 'z'::text, {option})"), &[&queue]).await;
            let refused = refused.expect_err(option);
            assert_eq!(refused.code(), Some(&SqlState::INVALID_PARAMETER_VALUE), "{queue}, {option}");
            assert!(refused.as_db_error().expect("by the server").message().contains(word), "{refused:?}");
        }
    }
}

#[tokio::test]
async fn rebuild_follows_a_renamed_type() {
    let (_, sql) = migrated().await;
    sql.batch_execute(
        "create type mood as enum ('x', 'y'); select trunkline.create_queue('q', 'mood'); alter type mood rename to temper",
    )
    .await
    .expect("renamed");
    enqueue(&sql, "q").await.expect_err("the branch has the former name");
    sql.batch_execute("select trunkline.rebuild('q')").await.expect("rebuilt");
    enqueue(&sql, "q").await.expect("enqueued");
}
