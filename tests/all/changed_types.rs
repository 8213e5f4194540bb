//! A type changes while a program runs. Connections keep the types of statements that they have
//! prepared, but look them up again once they no longer fit.

use std::error::Error as StdError;

use futures_util::future::{join, join_all};
use postgres_types::{FromSql, IsNull, ToSql, Type, private::BytesMut};
use tokio_postgres::Client;
use trunkline::{
    Db, Result, Settings,
    postgres::{
        Insert, Statement,
        compat::{self, NoTls},
    },
};

use crate::fixture::{connect, database, eventually};

/// Both ways in which a connection keeps types: with prepared statements, and without.
const SETTINGS: [&str; 2] = ["", " prepared_statements=off"];

/// Opens the library and a plain connection, on a database that these statements have filled.
async fn open(settings: &str, statements: &str) -> (Db, Client, String) {
    let url = database().await;
    let (sql, url) = (connect(&url).await, format!("{url}{settings}"));
    sql.batch_execute(statements).await.expect("created");
    (Db::connect(&url).await.expect("connected"), sql, url)
}

async fn client(url: &str) -> compat::Client {
    let (client, connection) = compat::connect(url, NoTls).await.expect("connected");
    tokio::spawn(connection);
    client
}

#[derive(Debug)]
struct Feeling(&'static str);

impl ToSql for Feeling {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> std::result::Result<IsNull, Box<dyn StdError + Sync + Send>> {
        out.extend_from_slice(self.0.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        ["mood", "feeling"].contains(&ty.name())
    }

    postgres_types::to_sql_checked!();
}

#[tokio::test]
async fn inserts_follow_a_type_that_was_made_again() {
    static ROWS: Insert<(Feeling,)> = Insert::into("t", &["m"]);
    let same_name = "alter type mood rename to former; create type mood as enum ('one', 'two');
                     alter table t alter m type mood using m::text::mood; drop type former";
    let other_name = "create type feeling as enum ('one', 'two');
                      alter table t alter m type feeling using m::text::feeling; drop type mood";
    for settings in SETTINGS {
        for change in [same_name, other_name] {
            let (db, sql, _) = open(settings, "create type mood as enum ('one'); create table t (m mood)").await;
            let in_transaction = async |word| -> Result<u64> {
                let transaction = db.begin().await?;
                let inserted = transaction.insert_many(&ROWS, [(Feeling(word),)]).await?;
                transaction.commit().await?;
                inserted.await
            };
            for _ in 0..3 {
                db.insert_many(&ROWS, [(Feeling("one"),)]).await.expect("inserted"); // on both connections
            }
            assert_eq!(in_transaction("one").await.expect("inserted"), 1);
            sql.batch_execute(change).await.expect("changed");
            for n in 0..3 {
                let inserted = db.insert_many(&ROWS, [(Feeling("two"),), (Feeling("one"),)]).await;
                assert_eq!(inserted.unwrap_or_else(|error| panic!("{settings:?}, {n}: {error}")), 2);
            }
            // A transaction cannot repeat a statement that has failed.
            in_transaction("two").await.expect_err("its connection knows the former type");
            assert_eq!(in_transaction("two").await.expect("inserted"), 1, "{settings:?}");
        }
    }
}

/// Calls on one connection share the description of a table. A failure marks it as outdated while
/// rows of another call are inserted.
#[tokio::test]
async fn inserted_rows_are_not_repeated_after_the_failure_of_another_call() {
    static ROWS: Insert<(i64,)> = Insert::into("t", &["n"]);
    static FAILS: Insert<(i64,)> = Insert::into("t", &["n"]).ending("returning missing");
    static UNREADABLE: Insert<(i64,), Vec<(String,)>> = Insert::into("t", &["n"]).ending("returning n");
    for settings in SETTINGS {
        let (db, sql, _) = open(settings, "create table t (n int8)").await;
        for _ in 0..5 {
            let known = join_all((0..2).map(|n| db.insert_many(&ROWS, [(n,)]))).await; // on both connections
            assert!(known.iter().all(Result::is_ok), "{known:?}");
            let fails = join_all((0..2).map(|n| db.insert_many(&FAILS, [(n,)])));
            let unreadable = join_all((0..2).map(|n| db.insert_many(&UNREADABLE, [(n,)])));
            let (failed, inserted) = join(fails, unreadable).await;
            assert!(failed.iter().all(Result::is_err) && inserted.iter().all(Result::is_err), "{inserted:?}");
        }
        let count = sql.query_one("select count(*) from t", &[]).await.expect("counted");
        assert_eq!(count.get::<_, i64>(0), 5 * 4, "each row is inserted once{settings}");
    }
}

/// The way in which a number is written.
#[derive(Debug, Clone, Copy)]
enum Way {
    Run,
    RunMany,
    InsertMany,
    Transaction,
    Client,
    Pipelined,
    Portal,
}

async fn write(way: Way, db: &Db, client: &mut compat::Client) -> bool {
    static WRITE: Statement<(i64,), u64> = Statement::new("insert into t values ($1)");
    static ROWS: Insert<(i64,)> = Insert::into("t", &["n"]);
    let text = "insert into t values ($1)";
    match way {
        Way::Run => db.run(&WRITE, (1,)).await.is_ok(),
        Way::RunMany => db.run_many(&WRITE, [(1,), (2,)]).await.is_ok(),
        Way::InsertMany => db.insert_many(&ROWS, [(1,)]).await.is_ok(),
        Way::Transaction => {
            let transaction = db.begin().await.expect("begun");
            transaction.run(&WRITE, (1,)).await.is_ok() && transaction.commit().await.is_ok()
        }
        Way::Client => client.execute(text, &[&1_i64]).await.is_ok(),
        Way::Pipelined => {
            let pipelined = client.pipelined();
            pipelined.execute(text, &[&1_i64]).await.is_ok() && pipelined.finish().await.is_ok()
        }
        Way::Portal => {
            let transaction = client.transaction().await.expect("begun");
            transaction.bind(text, &[&1_i64]).await.is_ok()
        }
    }
}

/// The program is newer than the table, so its values do not fit at first. The server does not see
/// these statements.
#[tokio::test]
async fn value_fits_once_its_column_was_altered() {
    let ways = [Way::Run, Way::RunMany, Way::InsertMany, Way::Transaction, Way::Client, Way::Pipelined, Way::Portal];
    for settings in SETTINGS {
        let (db, sql, url) = open(settings, "create table t (n int4)").await;
        let client = tokio::sync::Mutex::new(client(&url).await);
        let writes = async |way| write(way, &db, &mut *client.lock().await).await;
        for way in ways {
            assert!(!writes(way).await, "{way:?} of an int8 into an int4");
        }
        sql.batch_execute("alter table t alter n type int8").await.expect("altered");
        for way in ways {
            eventually(&format!("{way:?} looks the type up again{settings}"), || writes(way)).await;
        }
    }
}

#[derive(Debug, Clone, PartialEq, ToSql, FromSql)]
#[postgres(name = "mood", rename_all = "snake_case")]
enum Mood {
    One,
    Two,
}

#[tokio::test]
async fn enum_is_read_once_it_has_its_labels() {
    static ONE: Statement<(), (Mood,)> = Statement::new("select m from t");
    static ALL: Statement<(), Vec<(Mood,)>> = Statement::new("select m from t");
    for settings in SETTINGS {
        let create = "create type mood as enum ('one'); create table t (m mood); insert into t values ('one')";
        let (db, sql, url) = open(settings, create).await;
        let client = client(&url).await;
        let reads = async |way| match way {
            0 => db.run(&ONE, ()).await.is_ok(),
            1 => db.run(&ALL, ()).await.is_ok(),
            2 => db.begin().await.expect("begun").run(&ALL, ()).await.is_ok(),
            3 => {
                let transaction = db.begin().await.expect("begun");
                transaction.stream(&ALL, (), 1).await.expect("sent").next().await.is_ok()
            }
            _ => client.query_one("select m from t", &[]).await.expect("read").try_get::<_, Mood>(0).is_ok(),
        };
        for way in 0..5 {
            assert!(!reads(way).await, "way {way} of reading labels that the enum does not have");
        }
        sql.batch_execute("alter type mood add value 'two'").await.expect("added");
        for way in 0..5 {
            eventually(&format!("way {way} looks the labels up again{settings}"), || reads(way)).await;
        }
        assert_eq!(db.run(&ONE, ()).await.expect("read"), (Mood::One,));
    }
}

#[tokio::test]
async fn queue_opens_once_its_enum_has_its_labels() {
    for settings in SETTINGS {
        let (db, sql, _) = open(settings, "create type mood as enum ('one')").await;
        db.create_queue("q", &Settings::new("mood")).await.expect("created");
        for _ in 0..3 {
            assert!(db.queue::<Mood>("q").await.expect_err("a label is missing").is_wrong_type());
        }
        sql.batch_execute("alter type mood add value 'two'").await.expect("added");
        let queue = db.queue::<Mood>("q").await.expect("opened");
        queue.enqueue(Mood::Two).await.expect("enqueued");
        assert_eq!(queue.take(1).await.expect("taken")[0].payload, Mood::Two);
    }
}

#[tokio::test]
async fn statement_that_is_prepared_again_is_closed() {
    static ALL: Statement<(), u64> = Statement::new("select * from t");
    static KEPT: Statement<(), (i64,)> =
        Statement::new("select count(*) from pg_prepared_statements where statement = 'select * from t'");
    let (db, sql, _) = open("", "create table t (n int4)").await;
    for ty in ["int8", "int4", "int8"] {
        let transaction = db.begin().await.expect("begun"); // all transactions use one connection
        transaction.run(&ALL, ()).await.expect("read");
        assert_eq!(transaction.run(&KEPT, ()).await.expect("read"), (1,), "before it is {ty}");
        transaction.commit().await.expect("committed");
        sql.batch_execute(&format!("alter table t alter n type {ty}")).await.expect("altered");
        let transaction = db.begin().await.expect("begun");
        transaction.run(&ALL, ()).await.expect_err("its columns have changed");
        transaction.rollback().await.expect("rolled back");
    }
}
