//! Tests of groups on a real server. Each group is one transaction with one reply, even if a
//! statement in this group or in an earlier group fails.

mod broken;
mod bytes;
mod hostile;
#[cfg(unix)]
mod idle;
mod parts;
mod streamed;

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::FutureExt;
use postgres_types::Type;
use tokio::time::timeout;
use tokio_postgres::error::SqlState;

use super::{Columns, Connection, Group, Prepared, Reply, Use, WireError, connect::tests::server::server};
use crate::postgres::target::Target;

pub(super) async fn connection() -> Connection {
    let target = Target::parse_in(&server().await.on_socket(), |_| None).expect("a valid string");
    Connection::open(&target, Use::Alone).await.expect("connected")
}

/// Creates a group of statements without parameters, which the server does not keep.
fn group(statements: &[&str]) -> Group {
    let mut group = Group::new();
    for statement in statements {
        group.push_unnamed(&(*statement).into(), &[], &[]).expect("encoded");
    }
    group
}

fn numbers(answer: &Reply, place: usize) -> Vec<i32> {
    let columns = vec![(String::new(), Type::INT4)];
    let columns = Arc::new(Columns::new(Vec::new(), columns));
    answer.rows(place, &columns).iter().map(|row| row.read(0).expect("a number")).collect()
}

/// Returns the index of the statement that failed, and the error code.
fn refused(outcome: Result<Reply, WireError>) -> (usize, SqlState) {
    match outcome {
        Err(WireError::Server { statement, error, .. }) => (statement, error.code.clone()),
        outcome => panic!("the server should have refused it: {outcome:?}"),
    }
}

#[tokio::test]
async fn group_is_one_transaction_and_its_answers_come_in_order() {
    let connection = connection().await;
    connection.batch("create temp table t (n int)").await.expect("created");
    let answer = connection
        .send(group(&[
            "insert into t values (1), (2)",
            "select n from t order by n",
            "delete from t where n = 1",
            "",
            "select count(distinct xmin::text)::int from t",
        ]))
        .await
        .expect("answered");
    assert_eq!((answer.affected(0), answer.affected(2), answer.tag(3)), (2, 1, ""));
    assert_eq!((numbers(&answer, 1), numbers(&answer, 4)), (vec![1, 2], vec![1]));
}

#[tokio::test]
async fn error_names_its_statement_and_undoes_the_whole_group() {
    let connection = connection().await;
    connection.batch("create temp table t (n int)").await.expect("created");
    for at in 0..6 {
        let mut statements = ["insert into t values (1)"; 6];
        statements[at] = "select 1 / 0";
        assert_eq!(refused(connection.send(group(&statements)).await), (at, SqlState::DIVISION_BY_ZERO));
        statements[at] = "no statement";
        assert_eq!(refused(connection.send(group(&statements)).await), (at, SqlState::SYNTAX_ERROR));
        let left = connection.send(group(&["select count(*)::int from t"])).await.expect("in step");
        assert_eq!(numbers(&left, 0), [0]);
    }
}

#[tokio::test]
async fn commit_failure_has_its_place_after_the_last_statement() {
    let connection = connection().await;
    connection.batch("create temp table t (n int unique deferrable initially deferred)").await.expect("created");
    let outcome = connection.send(group(&["insert into t values (1)", "insert into t values (1)"])).await;
    assert_eq!(refused(outcome), (2, SqlState::UNIQUE_VIOLATION));
    assert_eq!(numbers(&connection.send(group(&["select n from t"])).await.expect("in step"), 0), [0; 0]);
}

#[tokio::test]
async fn unpreparable_statement_gives_its_reason_and_harms_no_other() {
    let connection = connection().await;
    let (wrong, right) = ("select nothing", "select 7");
    let unseen = |text: &str| {
        let named = connection.name(text).expect("sent");
        Prepared { text: text.into(), named: Some(named), columns: Arc::default() }
    };
    let (bad, good) = (unseen(wrong), unseen(right));
    let mut both = Group::new();
    both.push(&good, &[]).expect("encoded");
    both.push(&bad, &[]).expect("encoded");
    assert_eq!(refused(connection.send(both).await), (1, SqlState::UNDEFINED_COLUMN), "not: no such statement");
    let mut alone = Group::new();
    alone.push(&good, &[]).expect("encoded");
    assert_eq!(numbers(&connection.send(alone).await.expect("its Parse was not skipped"), 0), [7]);
    // The missing column exists now. The next use prepares the statement again, under a new name.
    connection.batch("create temp table n (nothing int)").await.expect("created");
    assert!(connection.query("select nothing from n", &[]).await.expect("prepared").is_empty());
    assert!(connection.query(wrong, &[]).await.is_err(), "and still says so");
}

#[tokio::test]
async fn failed_preparation_keeps_a_newer_statement_of_the_same_text() {
    let connection = connection().await;
    let text = "select n from created_later";
    let failed = connection.name(text).expect("sent");
    let created = connection.send(group(&["create temp table created_later (n int)"]));
    connection.forget(text);
    let newer = connection.name(text).expect("sent");
    created.await.expect("created");
    newer.described().await.expect("prepared");
    assert!(failed.failure().is_some(), "there was no table");
    assert!(Arc::ptr_eq(&connection.name(text).expect("known"), &newer));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_many_callers_gets_its_own_answer() {
    let connection = Arc::new(connection().await);
    let callers: Vec<_> = (0..500_i32)
        .map(|n| {
            let connection = connection.clone();
            tokio::spawn(async move {
                for turn in 0..20 {
                    if n % 3 == 0 {
                        assert_eq!(refused(connection.send(group(&["select 1", "select 1 / 0"])).await).0, 1);
                    } else {
                        let text = format!("select $1::int4 + {}", turn % 5);
                        let rows = connection.query(&text, &[&n]).await.expect("answered");
                        assert_eq!(rows[0].read::<i32>(0).expect("a number"), n + turn % 5);
                    }
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.expect("its own answer");
    }
}

#[tokio::test]
async fn sent_statement_runs_once_though_its_caller_goes_away() {
    let connection = connection().await;
    connection.batch("create temp table t (n int)").await.expect("created");
    for _ in 0..100 {
        drop(connection.send(group(&["insert into t values (1)"])));
    }
    let count = connection.send(group(&["select count(*)::int from t"])).await.expect("in step");
    assert_eq!(numbers(&count, 0), [100]);
}

#[tokio::test]
async fn a_group_larger_than_every_buffer_between_gets_through() {
    let connection = connection().await;
    let megabyte = "x".repeat(1 << 20);
    let mut large = Group::new();
    for _ in 0..40 {
        large.push_unnamed(&"select $1::text".into(), &[Type::TEXT], &[&megabyte]).expect("encoded");
    }
    let answer = tokio::time::timeout(Duration::from_secs(60), connection.send(large)).await.expect("no deadlock");
    let answer = answer.expect("answered");
    let columns = Arc::new(Columns::new(Vec::new(), vec![(String::new(), Type::TEXT)]));
    assert!((0..40).all(|place| answer.rows(place, &columns)[0].read::<&str>(0).expect("a text").len() == 1 << 20));
}

#[tokio::test]
async fn notices_and_notifications_are_not_taken_for_answers() {
    let connection = connection().await;
    let answer = connection
        .send(group(&[
            "listen here",
            "do $$ begin raise notice 'by the way'; raise warning 'and'; end $$",
            "select 1",
            "notify here, 'x'",
            "set application_name = 'another'",
            "select 2",
        ]))
        .await
        .expect("answered");
    assert_eq!((numbers(&answer, 2), numbers(&answer, 5)), (vec![1], vec![2]));
    assert_eq!(numbers(&connection.send(group(&["select 3"])).await.expect("in step"), 0), [3]);
}

#[tokio::test]
async fn a_copy_goes_with_its_data_in_one_group() {
    let connection = connection().await;
    connection.batch("create temp table t (n int)").await.expect("created");
    let mut copied = group(&["insert into t values (0)"]);
    copied.push_copy(&"copy t from stdin".into(), b"1\n2\n3\n").expect("encoded");
    copied.push_unnamed(&"select n from t order by n".into(), &[], &[]).expect("encoded");
    let answer = connection.send(copied).await.expect("answered");
    assert_eq!((answer.affected(1), numbers(&answer, 2)), (3, vec![0, 1, 2, 3]));
    let mut wrong = group(&["insert into t values (9)"]);
    wrong.push_copy(&"copy t from stdin".into(), b"no number\n").expect("encoded");
    assert_eq!(refused(connection.send(wrong).await), (1, SqlState::INVALID_TEXT_REPRESENTATION));
    let count = connection.send(group(&["select count(*)::int from t"])).await.expect("in step");
    assert_eq!(numbers(&count, 0), [4]);
}

#[tokio::test]
async fn groups_behind_an_open_copy_wait_for_room() {
    const SOON: Duration = Duration::from_secs(60);
    let connection = connection().await;
    connection.batch("create temp table t (n int)").await.expect("created");
    let _copy = connection.begin_copy(group(&["copy t from stdin"])).await.expect("begun");
    let megabyte = "x".repeat(1 << 20);
    let send = || {
        let mut large = Group::new();
        large.push_unnamed(&"select $1::text".into(), &[Type::TEXT], &[&megabyte]).expect("encoded");
        connection.send(large)
    };
    let behind: Vec<_> = (0..9).map(|_| send()).collect();
    let mut room = pin!(connection.room());
    assert!((&mut room).now_or_never().is_none(), "the groups need more than there is");
    timeout(SOON, connection.copy_room()).await.expect("the data goes on");
    connection.copy_data(&b"7\n"[..]).expect("sent");
    connection.end_copy(true);
    timeout(SOON, room).await.expect("the groups are written");
    for sent in behind {
        sent.await.expect("answered");
    }
    assert_eq!(numbers(&connection.send(group(&["select n from t"])).await.expect("in step"), 0), [7]);
}

#[tokio::test]
async fn a_parameter_that_cannot_be_written_leaves_nothing_behind() {
    let connection = connection().await;
    let wrong = connection.query("select $1::int4", &[&"text"]).await;
    assert!(matches!(wrong, Err(WireError::Encode(_))), "{wrong:?}");
    let few = connection.query("select $1::int4, $2::int4", &[&1_i32]).await;
    assert!(matches!(few, Err(WireError::Encode(_))), "{few:?}");
    assert_eq!(
        connection.query("select $1::int4", &[&5_i32]).await.expect("in step")[0].read::<i32>(0).expect("a number"),
        5
    );
    // The beginning of a text that cannot be written would break the connection for all callers.
    let slow = connection.query("select pg_sleep(0.05)::text, 7", &[]);
    let torn = connection.query("select 'a\0b'", &[]);
    let (slow, torn) = tokio::join!(slow, torn);
    assert!(matches!(torn, Err(WireError::Encode(_))), "{torn:?}");
    assert_eq!(slow.expect("another call")[0].read::<i32>(1).expect("a number"), 7);
}

#[tokio::test]
async fn user_defined_types_are_known_by_their_parts() {
    let connection = connection().await;
    let schema = format!("wire_{}", std::process::id());
    let text = format!(
        "create schema {schema}; set search_path = {schema};
         create type mood as enum ('glad', 'sad'); create domain positive as int4 check (value > 0);
         create type pair as (first int4, second mood[]); create type span as range (subtype = int4)"
    );
    connection.batch(&text).await.expect("created");
    let prepared = connection
        .prepare("select null::mood, null::positive, null::pair, null::pair[], null::span, $1::mood")
        .await
        .expect("described");
    let columns = &prepared.columns;
    let told: Vec<String> = columns.columns.iter().map(|(_, ty)| format!("{ty} {:?}", ty.kind())).collect();
    assert!(told[0].contains("Enum([\"glad\", \"sad\"])"), "{}", told[0]);
    assert!(told[2].contains("Composite") && told[2].contains("mood"), "{}", told[2]);
    assert!(told[3].contains("Array") && told[4].contains("Range"), "{told:?}");
    assert_eq!(columns.parameters[0].name(), "mood");
    connection.batch(&format!("drop schema {schema} cascade")).await.expect("dropped");
}

#[tokio::test]
async fn texts_without_end_do_not_fill_the_server() {
    let connection = connection().await;
    for n in 0..1100 {
        let rows = connection.query(&format!("select {n}"), &[]).await.expect("answered");
        assert_eq!(rows[0].read::<i32>(0).expect("a number"), n);
    }
    let kept = connection.query("select count(*)::int from pg_prepared_statements", &[]).await.expect("asked");
    assert!(kept[0].read::<i32>(0).expect("a number") <= 1000);
}
