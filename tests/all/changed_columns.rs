//! Without prepared statements, the library keeps only the description of a statement. If the
//! statement's table changes, values are never read with the types or columns that it had before.

use std::error::Error as StdError;

use futures_util::TryStreamExt;
use postgres_types::{FromSql, IsNull, ToSql, Type, private::BytesMut};
use tokio_postgres::Client;
use trunkline::{
    Db, Result,
    postgres::{
        FromRow, Statement,
        compat::{self, NoTls},
    },
};

use crate::fixture::{connect, database};

/// Opens the library and a plain connection, on a database with the table `t` of one row.
async fn open() -> (Db, Client, String) {
    let url = database().await;
    let (sql, unnamed) = (connect(&url).await, format!("{url} prepared_statements=off"));
    sql.batch_execute("create table t (a int, n int8, word text); insert into t values (7, 1, 'one')")
        .await
        .expect("created");
    (Db::connect(&unnamed).await.expect("connected"), sql, unnamed)
}

/// Reads the only row of a statement in every way in which the library reads rows.
async fn read<T: FromRow + PartialEq + std::fmt::Debug + Send>(db: &Db, text: &'static str) -> Vec<Result<T>> {
    let (one, many) = (Statement::<(), T>::new(text), Statement::<(), Vec<T>>::new(text));
    let first = |rows: Result<Vec<T>>| rows.map(|mut rows| rows.remove(0));
    let mut read = Vec::new();
    for _ in 0..3 {
        read.push(db.run(&one, ()).await); // three calls use both connections that statements share
    }
    read.push(first(db.run(&many, ()).await));
    read.push(first(db.run_many(&one, [()]).await));
    let transaction = db.begin().await.expect("begun");
    read.push(transaction.run(&one, ()).await);
    read.push(first(transaction.run(&many, ()).await));
    read.push(transaction.send(&one, ()).await.expect("sent").await);
    read.push(transaction.stream(&many, (), 1).await.expect("sent").next().await.map(|row| row.expect("a row")));
    transaction.commit().await.expect("no read has broken the transaction");
    read
}

/// Returns the values, none of which is an error.
fn values<T: std::fmt::Debug>(read: Vec<Result<T>>) -> Vec<T> {
    read.into_iter().map(|value| value.expect("read")).collect()
}

#[tokio::test]
async fn altered_type_is_that_of_the_next_value() {
    let (db, sql, _) = open().await;
    let text = "select n from t";
    assert_eq!(values(read::<(i64,)>(&db, text).await), [(1,); 9]);
    sql.batch_execute("alter table t alter n type float8").await.expect("altered");
    assert_eq!(values(read::<(f64,)>(&db, text).await), [(1.0,); 9]);
    sql.batch_execute("alter table t alter n type int8").await.expect("altered");
    for wrong in read::<(f64,)>(&db, text).await {
        let error = wrong.expect_err("it is a number of another type").to_string();
        assert!(error.contains("column \"n\"") && error.contains("int8"), "{error}");
    }
}

#[tokio::test]
async fn dropped_column_moves_no_other() {
    let (db, sql, _) = open().await;
    let text = "select * from t";
    let before = (7, 1, "one".to_owned());
    assert_eq!(values(read::<(i32, i64, String)>(&db, text).await), vec![before; 9]);
    sql.batch_execute("alter table t drop a, add a int default 8").await.expect("altered");
    for wrong in read::<(i32, i64, String)>(&db, text).await {
        let error = wrong.expect_err("the order is another one").to_string();
        assert!(error.contains("column \"n\""), "{error}");
    }
    assert_eq!(values(read::<(i64, String, i32)>(&db, text).await), vec![(1, "one".to_owned(), 8); 9]);
}

#[derive(Debug, PartialEq)]
struct Mood(String);

impl<'a> FromSql<'a> for Mood {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> std::result::Result<Self, Box<dyn StdError + Sync + Send>> {
        assert!(matches!(ty.kind(), postgres_types::Kind::Enum(labels) if labels == &["one", "two"]));
        Ok(Self(String::from_utf8(raw.to_vec())?))
    }

    fn accepts(ty: &Type) -> bool {
        ty.name() == "mood"
    }
}

#[tokio::test]
async fn own_type_of_an_altered_column_is_looked_up_for_the_next_call() {
    let (db, sql, _) = open().await;
    let mut transaction = db.begin().await.expect("begun"); // a transaction has its own connection
    let text = Statement::<(), (String,)>::new("select word from t");
    assert_eq!(transaction.run(&text, ()).await.expect("read"), ("one".to_owned(),));
    transaction.commit().await.expect("committed");
    sql.batch_execute("create type mood as enum ('one', 'two'); alter table t alter word type mood using word::mood")
        .await
        .expect("altered");
    let mood = Statement::<(), (Mood,)>::new("select word from t");
    transaction = db.begin().await.expect("begun");
    let error = transaction.run(&mood, ()).await.expect_err("the type is not known yet").to_string();
    assert!(error.contains("OID"), "{error}");
    assert_eq!(transaction.run(&mood, ()).await.expect("read"), (Mood("one".to_owned()),));
    transaction.commit().await.expect("committed");
}

#[derive(Debug)]
struct Feeling(&'static str);

impl ToSql for Feeling {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> std::result::Result<IsNull, Box<dyn StdError + Sync + Send>> {
        out.extend_from_slice(self.0.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        ty.name() == "mood"
    }

    postgres_types::to_sql_checked!();
}

/// Binds a parameter to a portal, in a transaction that is rolled back.
async fn binds(client: &mut compat::Client, word: &'static str) -> bool {
    let transaction = client.transaction().await.expect("begun");
    transaction.bind("select count(*) from t where m = $1", &[&Feeling(word)]).await.is_ok()
}

#[tokio::test]
async fn parameter_of_a_type_that_was_made_again_is_sent_with_the_new_one() {
    for settings in ["", " prepared_statements=off"] {
        let url = database().await;
        let sql = connect(&url).await;
        sql.batch_execute("create type mood as enum ('one'); create table t (m mood)").await.expect("created");
        let db = Db::connect(&format!("{url}{settings}")).await.expect("connected");
        let write = Statement::<(Feeling,), u64>::new("insert into t values ($1)");
        let find = Statement::<(Feeling,), (i64,)>::new("select count(*) from t where m = $1");
        let all = Statement::<(Feeling,), Vec<(i64,)>>::new("select count(*) from t where m = $1");
        let streams = async |word| -> Result<Option<(i64,)>> {
            let transaction = db.begin().await?;
            let found = match transaction.stream(&all, (Feeling(word),), 1).await {
                Ok(mut rows) => rows.next().await,
                Err(error) => Err(error),
            };
            transaction.rollback().await?;
            found
        };
        let (mut client, connection) = compat::connect(&format!("{url}{settings}"), NoTls).await.expect("connected");
        tokio::spawn(connection);
        assert_eq!(streams("one").await.expect("streamed"), Some((0,)));
        assert!(binds(&mut client, "one").await);
        for _ in 0..3 {
            db.run(&write, (Feeling("one"),)).await.expect("written"); // on all connections that statements share
            db.run(&find, (Feeling("one"),)).await.expect("found");
        }
        sql.batch_execute(
            "alter type mood rename to former; create type mood as enum ('one', 'two');
             alter table t alter m type mood using m::text::mood; drop type former",
        )
        .await
        .expect("altered");
        for n in 1..=3 {
            db.run(&write, (Feeling("two"),)).await.expect("written");
            assert_eq!(db.run(&find, (Feeling("two"),)).await.expect("found"), (n,), "{settings:?}");
        }
        // A transaction cannot repeat a statement that has failed.
        let _failed = (streams("two").await, binds(&mut client, "two").await);
        assert_eq!(streams("two").await.expect("streamed"), Some((3,)), "{settings:?}");
        assert!(binds(&mut client, "two").await, "{settings:?}");
    }
}

#[tokio::test]
async fn client_of_tokio_postgres_sees_the_columns_of_each_reply() {
    let (_, sql, url) = open().await;
    let (mut client, connection) = compat::connect(&url, NoTls).await.expect("connected");
    tokio::spawn(connection);
    let statement = client.prepare("select * from t").await.expect("prepared");
    let mut names = Vec::new();
    for change in ["", "alter table t drop a", "alter table t alter n type float8", "alter table t rename n to m"] {
        sql.batch_execute(change).await.expect("altered");
        let mut rows = client.query("select * from t", &[]).await.expect("read");
        rows.extend(client.query(&statement, &[]).await.expect("read"));
        let stream = client.query_raw(&statement, Vec::<i32>::new()).await.expect("sent");
        rows.extend(stream.try_collect::<Vec<_>>().await.expect("read"));
        rows.push(client.pipelined().query_one(&statement, &[]).await.expect("sent").await.expect("read"));
        let transaction = client.transaction().await.expect("begun");
        let portal = transaction.bind(&statement, &[]).await.expect("bound");
        rows.extend(transaction.query_portal(&portal, 1).await.expect("read"));
        transaction.commit().await.expect("committed");
        assert_eq!(rows.len(), 5);
        for row in &rows {
            let columns: Vec<_> = row.columns().iter().map(|column| column.name().to_owned()).collect();
            let number = columns.iter().position(|name| name == "n" || name == "m").expect("a number");
            match *row.columns()[number].type_() {
                Type::INT8 => assert_eq!(row.get::<_, i64>(number), 1),
                _ => assert!(row.try_get::<_, i64>(number).is_err() && row.get::<_, f64>(number).to_string() == "1"),
            }
            assert_eq!(row.get::<_, &str>("word"), "one");
            names.push(columns.join(" "));
        }
    }
    names.dedup();
    assert_eq!(names, ["a n word", "n word", "m word"]);
}

#[tokio::test]
async fn copies_of_a_client_without_prepared_statements_run() {
    let (_, _sql, url) = open().await;
    let (client, connection) = compat::connect(&url, NoTls).await.expect("connected");
    tokio::spawn(connection);
    let mut sink = Box::pin(client.copy_in::<_, trunkline::Bytes>("copy t from stdin").await.expect("begun"));
    futures_util::SinkExt::send(&mut sink, "8\t2\ttwo\n".into()).await.expect("sent");
    assert_eq!(sink.as_mut().finish().await.expect("copied"), 1);
    let out = client.copy_out("copy t to stdout").await.expect("begun");
    let out: Vec<_> = out.try_collect().await.expect("copied");
    assert_eq!(out.concat(), b"7\t1\tone\n8\t2\ttwo\n");
}
