//! Tests users' own statements, each in its own transaction.

use std::{collections::HashMap, time::SystemTime};

use futures_util::future::join_all;
use postgres_types::{FromSql, ToSql};
use tokio_postgres::error::SqlState;
use trunkline::{
    Bytes, Db, Error, Json,
    postgres::{FromRow, Insert, Statement, Values},
};

use crate::fixture::database;

type Nothing = Statement<(), ()>;

static INSERT: Statement<(i32, &str), u64> = Statement::new("insert into t values ($1, $2)");
static ALL: Statement<(), Vec<(i32, Option<String>)>> = Statement::new("select n, word from t order by n, word");
static COUNT: Statement<(), (i64,)> = Statement::new("select count(*) from t");

pub async fn table() -> Db {
    let db = Db::connect(&database().await).await.expect("connected");
    db.run(&Nothing::new("create table t (n int unique, word text)"), ()).await.expect("created");
    db
}

#[tokio::test]
async fn an_answer_is_what_its_type_says() {
    let db = table().await;
    assert_eq!(db.run(&INSERT, (1, "one")).await.expect("inserted"), 1);
    let two = Statement::<_, u64>::new("insert into t values ($1, null), ($2, 'three')");
    assert_eq!(db.run(&two, (2, 3)).await.expect("inserted"), 2);
    let all = db.run(&ALL, ()).await.expect("read");
    assert_eq!(all, [(1, Some("one".into())), (2, None), (3, Some("three".into()))]);
    let word = Statement::<(i32,), Option<(String,)>>::new("select word from t where n = $1");
    assert_eq!(db.run(&word, (3,)).await.expect("read"), Some(("three".into(),)));
    assert_eq!(db.run(&word, (4,)).await.expect("read"), None);
    assert_eq!(db.run(&COUNT, ()).await.expect("read"), (3,));
    let some = Statement::<(&[i32],), Vec<(i32,)>>::new("select n from t where n = any($1) order by n");
    assert_eq!(db.run(&some, (&[3, 1, 9],)).await.expect("read"), [(1,), (3,)]);
    assert_eq!(db.run(&Statement::<(), u64>::new("update t set word = word"), ()).await.expect("updated"), 3);
    assert_eq!(db.run(&Statement::<(), u64>::new("delete from t where n > 1"), ()).await.expect("deleted"), 2);
}

/// A user-defined type that the library does not support by itself.
#[derive(Debug, Clone, PartialEq, ToSql, FromSql)]
#[postgres(name = "mood", rename_all = "snake_case")]
enum Mood {
    Glad,
    VerySad,
}

#[derive(Debug, PartialEq)]
struct Person {
    name: String,
    moods: Vec<Mood>,
}

impl FromRow for Person {
    fn from_row(row: &mut Values<'_>) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        assert_eq!(row.columns()[1].1.name(), "_mood");
        Ok(Self { name: row.read::<&str>()?.to_owned(), moods: row.read()? })
    }
}

#[tokio::test]
async fn types_of_the_users_are_found_by_their_names() {
    let db = table().await;
    db.run(&Nothing::new("create type mood as enum ('glad', 'very_sad')"), ()).await.expect("created");
    db.run(&Nothing::new("create table person (name text, moods mood[])"), ()).await.expect("created");
    let insert = Statement::<(&str, Vec<Mood>), Person>::new("insert into person values ($1, $2) returning *");
    let ada = db.run(&insert, ("ada", vec![Mood::VerySad, Mood::Glad])).await.expect("inserted");
    assert_eq!(ada, Person { name: "ada".into(), moods: vec![Mood::VerySad, Mood::Glad] });
}

#[tokio::test]
async fn every_value_comes_back_as_it_went() {
    let db = table().await;
    let echo =
        Statement::<_, (i64, f64, bool, Vec<u8>, Json<HashMap<String, i32>>, SystemTime, Vec<Option<String>>)>::new(
            "select $1::int8, $2::float8, $3::bool, $4::bytea, $5::jsonb, $6::timestamptz, $7::text[]",
        );
    let json = HashMap::from([("a".to_owned(), 1)]);
    let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_micros(1_700_000_000_123_456);
    let texts = vec![Some("x".to_owned()), None, Some(String::new())];
    let sent =
        (i64::MIN, 1.5_f64, true, Bytes::from_static(b"\0\xff").to_vec(), Json(json.clone()), time, texts.clone());
    let came = db.run(&echo, sent).await.expect("echoed");
    assert_eq!((came.0, came.1, came.2, came.3.as_slice()), (i64::MIN, 1.5, true, &b"\0\xff"[..]));
    assert_eq!((came.4.0, came.5, came.6), (json, time, texts));
    // A list of parameters is needed for more parameters than a tuple can have, or for a number
    // that is known only at run time.
    let many: Vec<i32> = (0..12).collect();
    let params: Vec<&(dyn ToSql + Sync)> = many.iter().map(|n| n as _).collect();
    let list = (1..=12).map(|n| format!("${n}::int4")).collect::<Vec<_>>().join("+");
    let sum = Statement::<&[&(dyn ToSql + Sync)], (i32,)>::of(format!("select {list}"));
    assert_eq!(db.run(&sum, &params).await.expect("added"), (66,));
}

#[tokio::test]
async fn statement_mismatch_is_named_with_its_place() {
    let db = table().await;
    db.run(&INSERT, (1, "one")).await.expect("inserted");
    db.run(&Statement::<(), u64>::new("insert into t values (2, null)"), ()).await.expect("inserted");
    let said = |error: Error| error.to_string();
    let wrong = Statement::<(), Vec<(i64,)>>::new("select n from t");
    assert!(said(db.run(&wrong, ()).await.expect_err("int4")).contains("column \"n\""));
    let null = Statement::<(), Vec<(String,)>>::new("select word from t");
    assert!(said(db.run(&null, ()).await.expect_err("null")).contains("column \"word\""));
    let one = Statement::<(), (i32,)>::new("select n from t");
    assert!(said(db.run(&one, ()).await.expect_err("two")).contains("one row was expected, not 2"));
    let one = Statement::<(), Option<(i32,)>>::new("select n from t");
    assert!(said(db.run(&one, ()).await.expect_err("two")).contains("at most was expected, not 2"));
    let few = Statement::<(), Vec<(i32,)>>::new("select n, word from t");
    assert!(said(db.run(&few, ()).await.expect_err("two columns")).contains("1 more than were read"));
    let more = Statement::<(), Vec<(i32, Option<String>, i32)>>::new("select n, word from t");
    assert!(said(db.run(&more, ()).await.expect_err("two columns")).contains("fewer than are read"));
    let params = Statement::<(i32,), ()>::new("select $1::int4, $2::int4");
    assert!(said(db.run(&params, (1,)).await.expect_err("one")).contains("has 2 parameters, not 1"));
    let text = Statement::<(&str,), ()>::new("select $1::int4");
    assert!(said(db.run(&text, ("x",)).await.expect_err("text")).contains("int4"));
    let refused = db.run(&INSERT, (1, "again")).await.expect_err("there is one");
    assert_eq!((refused.sqlstate(), refused.failed_statement()), (Some(&SqlState::UNIQUE_VIOLATION), Some(0)));
    assert!(said(refused).contains("insert into t values"));
    let unknown = db.run(&Nothing::new("select nothing"), ()).await.expect_err("no column");
    assert_eq!(unknown.sqlstate(), Some(&SqlState::UNDEFINED_COLUMN));
    assert_eq!(db.run(&COUNT, ()).await.expect("and all the same it works"), (2,));
}

#[tokio::test]
async fn many_are_one_transaction_and_answer_in_order() {
    let db = table().await;
    let insert = Statement::<(i32, String), (i32,)>::new("insert into t values ($1, $2) returning n * 10");
    let rows = |range: std::ops::Range<i32>| range.map(|n| (n, n.to_string()));
    let answers = db.run_many(&insert, rows(0..1000)).await.expect("inserted");
    assert!(answers.iter().map(|(n,)| *n).eq((0..1000).map(|n| n * 10)));
    let at = db.run_many(&insert, rows(1000..1010).chain(rows(5..6)).chain(rows(2000..2001))).await;
    let error = at.expect_err("5 is there");
    assert_eq!((error.failed_statement(), error.sqlstate()), (Some(10), Some(&SqlState::UNIQUE_VIOLATION)));
    assert!(error.to_string().contains("statement 11 in the pipeline"), "{error}");
    assert_eq!(db.run(&COUNT, ()).await.expect("read"), (1000,), "none of them");
    assert!(db.run_many(&insert, []).await.expect("nothing").is_empty());
}

#[tokio::test]
async fn early_answers_of_run_many_count_only_if_all_succeed() {
    let db = table().await;
    let long = |by: i32| (1..=300).map(move |n| (n, if n == 300 { by } else { 1 })); // about 600 kB, which arrive in many parts
    let whole = Statement::<(i32, i32), (i32, String)>::new("select $1::int4 / $2::int4, repeat('x', 2000 + $1)");
    let answers = db.run_many(&whole, long(1)).await.expect("answered");
    assert!(answers.iter().map(|(n, text)| (*n, text.len())).eq((1..=300).map(|n| (n, 2000 + n as usize))));
    assert_eq!(db.run_many(&whole, long(0)).await.expect_err("by zero").failed_statement(), Some(299));
    // Leaves a column of each answer unread. The call reports the unread column, unless the server
    // reports an error.
    let half = Statement::<(i32, i32), (i32,)>::new("select $1::int4 / $2::int4, repeat('x', 2000 + $1)");
    let unread = db.run_many(&half, long(1)).await.expect_err("one column more").to_string();
    assert!(unread.contains("more than were read"), "{unread}");
    let refused = db.run_many(&half, long(0)).await.expect_err("by zero");
    assert_eq!((refused.failed_statement(), refused.sqlstate()), (Some(299), Some(&SqlState::DIVISION_BY_ZERO)));
    // Changes the table, so that the call prepares its statement again, runs a second time, and
    // drops the results of the first run.
    let all = Statement::<(i32,), Vec<(i32, Option<String>)>>::new("select * from t where n > $1");
    db.run(&INSERT, (1, &"x".repeat(40_000))).await.expect("inserted");
    assert_eq!(db.run_many(&all, [(0,), (0,)]).await.expect("read").len(), 2);
    db.run(&Nothing::new("alter table t alter word type varchar"), ()).await.expect("altered");
    let again = db.run_many(&all, [(0,), (0,), (5,)]).await.expect("read");
    assert_eq!(again.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_callers_get_their_own_answers() {
    let db = table().await;
    let half = Statement::<(i32,), (i32,)>::new("select 100 / $1");
    let answers = join_all((0..300).map(|n| db.run(&half, (n % 3,)))).await;
    for (n, answer) in answers.into_iter().enumerate() {
        match n % 3 {
            0 => assert_eq!(answer.expect_err("by zero").sqlstate(), Some(&SqlState::DIVISION_BY_ZERO)),
            by => assert_eq!(answer.expect("divided"), (100 / by as i32,)),
        }
    }
}

#[tokio::test]
async fn a_statement_follows_the_table_when_it_changes() {
    let db = table().await;
    let all = Statement::<(), Vec<(i32, String)>>::new("select * from t");
    db.run(&INSERT, (1, "one")).await.expect("inserted");
    assert_eq!(db.run(&all, ()).await.expect("read"), [(1, "one".into())]);
    db.run(&Nothing::new("drop table t"), ()).await.expect("dropped");
    db.run(&Nothing::new("create table t (n int, word varchar)"), ()).await.expect("created");
    db.run(&INSERT, (2, "two")).await.expect("inserted");
    assert_eq!(db.run(&all, ()).await.expect("read"), [(2, "two".into())]);
}

#[tokio::test]
async fn rows_are_inserted_by_columns() {
    static ROWS: Insert<(i32, Option<String>)> = Insert::into("t", &["n", "word"]);
    static UPSERT: Insert<(i32, &str), Vec<(i32, bool)>> = Insert::into("t", &["n", "word"])
        .ending("on conflict (n) do update set word = excluded.word returning n, xmax = 0");
    let db = table().await;
    let rows = (0..5000).map(|n| (n, (n % 3 > 0).then(|| n.to_string())));
    assert_eq!(db.insert_many(&ROWS, rows).await.expect("inserted"), 5000);
    let all = db.run(&ALL, ()).await.expect("read");
    assert!((0..5000).all(|n| all[n as usize] == (n, (n % 3 > 0).then(|| n.to_string()))));
    let upserted = db.insert_many(&UPSERT, [(7, "seven"), (5000, "new")]).await.expect("upserted");
    assert_eq!(upserted, [(7, false), (5000, true)]);
    assert_eq!(db.insert_many(&ROWS, []).await.expect("none"), 0);
    let twice = db.insert_many(&ROWS, [(9000, None), (7, None)]).await.expect_err("7 is there");
    assert_eq!(twice.sqlstate(), Some(&SqlState::UNIQUE_VIOLATION));
    let wrong = Insert::<(i32,)>::into("t", &["n", "word"]);
    let said = db.insert_many(&wrong, [(1,)]).await.expect_err("a value is missing").to_string();
    assert!(said.contains("1 values for 2 columns"), "{said}");
    db.run(&Nothing::new("create table lists (list int[])"), ()).await.expect("created");
    let lists = Insert::<(Vec<i32>,)>::into("lists", &["list"]);
    let said = db.insert_many(&lists, [(vec![1],)]).await.expect_err("an array").to_string();
    assert!(said.contains("use run_many"), "{said}");
}

#[tokio::test]
async fn a_copy_is_one_call() {
    let db = table().await;
    let copy = Statement::<(), u64>::new("copy t from stdin");
    assert_eq!(db.copy_in(&copy, b"1\tone\n2\t\\N\n").await.expect("copied"), 2);
    assert_eq!(db.run(&ALL, ()).await.expect("read"), [(1, Some("one".into())), (2, None)]);
    let error = db.copy_in(&copy, b"3\tthree\n1\tagain\n").await.expect_err("1 is there");
    assert_eq!(error.sqlstate(), Some(&SqlState::UNIQUE_VIOLATION));
    assert_eq!(db.run(&COUNT, ()).await.expect("read"), (2,));
    let large: Vec<u8> = (10..200_000).flat_map(|n| format!("{n}\tword\n").into_bytes()).collect();
    assert_eq!(db.copy_in(&copy, &large).await.expect("copied"), 199_990);
}

#[tokio::test]
async fn without_prepared_statements_all_is_the_same() {
    let url = database().await;
    let db = Db::connect(&format!("{url} prepared_statements=off")).await.expect("connected");
    db.run(&Nothing::new("create table t (n int unique, word text)"), ()).await.expect("created");
    let rows = (0..100).map(|n| (n, "word"));
    assert_eq!(db.run_many(&INSERT, rows).await.expect("inserted"), [1; 100]);
    let transaction = db.begin().await.expect("begun");
    transaction.send(&INSERT, (100, "in")).await.expect("sent");
    assert_eq!(transaction.run(&COUNT, ()).await.expect("read"), (101,));
    transaction.commit().await.expect("committed");
    let named = Statement::<(), (i64,)>::new("select count(*) from pg_prepared_statements");
    assert_eq!(db.run(&named, ()).await.expect("read"), (0,));
    let error = Db::connect(&format!("{url} prepared_statements=maybe")).await.expect_err("not known");
    assert!(error.to_string().contains("use on or off"), "{error}");
}

#[tokio::test]
async fn statement_that_begins_a_transaction_is_refused_without_losing_later_data() {
    let db = table().await;
    let begin = Nothing::new("/* a /* nested */ comment */ begin");
    for turn in 0..3 {
        let refused = db.run(&begin, ()).await.expect_err("no caller could end it").to_string();
        assert!(refused.contains("Db::begin"), "{turn}: {refused}");
    }
    let many = db.run_many(&begin, [(), ()]).await.expect_err("nor these").to_string();
    assert!(many.contains("Db::begin"), "{many}");
    for n in 0..6 {
        assert_eq!(db.run(&INSERT, (n, "there")).await.expect("inserted"), 1);
    }
    let other = db.begin().await.expect("another connection");
    assert_eq!(other.run(&COUNT, ()).await.expect("read"), (6,), "for all connections");
}

#[tokio::test]
async fn answer_beyond_its_size_or_time_limit_is_given_up() {
    static REPEAT: Statement<(i32,), (String,)> = Statement::new("select repeat('x', $1)");
    static KEPT: Statement<(), Vec<(i32, String)>> =
        Statement::new("insert into t select n, repeat('x', 1000) from generate_series(1, 5000) n returning n, word");
    let url = database().await;
    let db = Db::connect(&format!("{url} max_answer=1MB answer_timeout=10")).await.expect("connected");
    db.run(&Nothing::new("create table t (n int unique, word text)"), ()).await.expect("created");
    let small = db.run(&REPEAT, (100_000,)).await.expect("small enough").0;
    assert_eq!(small.len(), 100_000);
    for text in [
        db.run(&REPEAT, (2_000_000,)).await.expect_err("too large").to_string(),
        db.run(&KEPT, ()).await.expect_err("too large").to_string(),
    ] {
        assert!(text.contains("larger than 1048576 bytes") && text.contains("took effect"), "{text}");
    }
    assert_eq!(db.run(&COUNT, ()).await.expect("others go on").0, 5000, "it took effect");
    let refused = db.run(&KEPT, ()).await.expect_err("they are there");
    assert_eq!(refused.sqlstate(), Some(&SqlState::UNIQUE_VIOLATION));
    // A commit counts even if the reply to another statement of its group is too large.
    let transaction = db.begin().await.expect("begun");
    let large = transaction.send(&REPEAT, (2_000_000,)).await.expect("queued");
    drop(transaction.send(&INSERT, (-1, "beside it")).await.expect("queued"));
    transaction.commit().await.expect("committed");
    assert!(large.await.expect_err("too large").to_string().contains("larger than 1048576 bytes"));
    db.run(&Nothing::new("delete from t where n = -1"), ()).await.expect("deleted");
    // Repeats this with answers that are larger, and arrive in several parts.
    let transaction = db.begin().await.expect("begun");
    let all = Statement::<(), Vec<(i32, String)>>::new("select n, word from t");
    let mut stream = transaction.stream(&all, (), 100).await.expect("sent");
    let mut rows = 0;
    while let Some(chunk) = stream.next_chunk().await.expect("read") {
        rows += chunk.len();
    }
    assert_eq!(rows, 5000);
    drop(transaction);
    let late = db.run(&Nothing::new("select pg_sleep(60)"), ()).await.expect_err("too late");
    assert!(late.is_outcome_unknown(), "{late}");
    assert_eq!(db.run(&COUNT, ()).await.expect("another connection").0, 5000);
}

#[tokio::test]
async fn procedure_that_commits_and_fails_runs_once() {
    let db = table().await;
    let text = "create procedure part() language plpgsql as $$
                begin insert into t values (1, 'kept'); commit; raise feature_not_supported using message = 'no'; end $$";
    db.run(&Nothing::new(text), ()).await.expect("created");
    db.run(&Nothing::new("alter table t drop constraint t_n_key"), ()).await.expect("altered");
    let error = db.run(&Nothing::new("call part()"), ()).await.expect_err("it raises");
    assert_eq!(error.sqlstate(), Some(&SqlState::FEATURE_NOT_SUPPORTED));
    assert_eq!(db.run(&COUNT, ()).await.expect("counted"), (1,));
}

#[tokio::test(flavor = "multi_thread")]
async fn unpreparable_statement_is_named_with_its_place() {
    let db = Db::connect(&database().await).await.expect("connected");
    let wrong: Statement<(), ()> = Statement::new("select nothing from nowhere");
    let good: Statement<(), Vec<(i32,)>> = Statement::new("select 1");
    let told = |place: usize, error: trunkline::Error| {
        let text = format!("(statement {} in the pipeline: select nothing from nowhere)", place + 1);
        assert!(error.to_string().contains(&text), "{error}");
        assert_eq!(error.failed_statement(), Some(place), "{error}");
    };
    told(0, db.run(&wrong, ()).await.expect_err("there is no such table"));
    told(0, db.run_many(&wrong, [(), ()]).await.expect_err("there is no such table"));
    let transaction = db.begin().await.expect("begun");
    transaction.run(&good, ()).await.expect("run");
    told(1, transaction.run(&wrong, ()).await.expect_err("there is no such table"));
    let transaction = db.begin().await.expect("begun");
    told(0, transaction.send(&wrong, ()).await.expect_err("there is no such table"));
    let insert: trunkline::postgres::Insert<(i32,)> = trunkline::postgres::Insert::into("nowhere", &["n"]);
    let error = db.insert_many(&insert, [(1,)]).await.expect_err("there is no such table").to_string();
    assert!(error.contains("(statement 1 in the pipeline: select n from nowhere)"), "{error}");
}
