//! Notices, notifications and parameter changes between answers are not mistaken for answers.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use futures_util::future::join_all;
use tokio_postgres::error::SqlState;
use trunkline::{Db, Settings, Wait, postgres::Statement};

use crate::fixture::{connect, database, superuser};

type Nothing = Statement<(), ()>;

static INSERT: Statement<(i32,), u64> = Statement::new("insert into t values ($1)");
static SERIES: Statement<(i32,), Vec<(i32,)>> = Statement::new("select generate_series(1, $1)");
/// Raises notices before, between and after its rows, and returns its own parameter.
static LOUD: Statement<(i32,), Vec<(i32,)>> = Statement::new("select loud(n) from generate_series($1, $1 + 4) n");
/// Changes a setting whose value the server reports.
static SET: Statement<(), ()> =
    Statement::new("select set_config('application_name', 'trunkline' || random()::text, false)");
static NOTIFY: Statement<(), ()> = Statement::new("select pg_notify('here', random()::text)");

const MAKE: &str = "
    create table t (n int unique);
    create function loud(n int) returns int language plpgsql as $$
    begin
        raise notice 'a notice of %', n;
        perform pg_notify('here', n::text);
        perform set_config('application_name', 'trunkline' || random()::text, false);
        raise warning 'and a warning';
        return n;
    end $$";

async fn statements(db: &Db, caller: i32) {
    for turn in 0..10 {
        let first = (caller * 10 + turn) * 100;
        db.run(&Nothing::new("listen here"), ()).await.expect("listens, on one of the connections");
        let expected: Vec<(i32,)> = (first..first + 5).map(|n| (n,)).collect();
        assert_eq!(db.run(&LOUD, (first,)).await.expect("answered"), expected);
        let many = db.run_many(&LOUD, [(first,), (first,)]).await.expect("answered");
        assert_eq!(many, [expected.clone(), expected.clone()]);
        db.run(&SET, ()).await.expect("set");
        let error = db.run_many(&INSERT, [first, first + 1, first].map(|n| (n,))).await.expect_err("it is there");
        assert_eq!((error.failed_statement(), error.sqlstate()), (Some(2), Some(&SqlState::UNIQUE_VIOLATION)));

        let transaction = db.begin().await.expect("begun");
        transaction.run(&Nothing::new("listen here"), ()).await.expect("listens");
        let loud = transaction.send(&LOUD, (first,)).await.expect("sent");
        transaction.send(&SET, ()).await.expect("sent");
        transaction.send(&NOTIFY, ()).await.expect("sent");
        let inserted = transaction.send(&INSERT, (first,)).await.expect("sent");
        let mut stream = transaction.stream(&SERIES, (50,), 7).await.expect("sent");
        let mut sum = 0;
        while let Some((n,)) = stream.next().await.expect("read") {
            sum += n;
            transaction.send(&LOUD, (n,)).await.expect("sent");
        }
        let copy = Statement::<(), u64>::new("copy t from stdin");
        let copied = transaction.copy_in(&copy, format!("{}\n", first + 50).as_bytes()).await.expect("sent");
        transaction.commit().await.expect("committed");
        assert_eq!((loud.await.expect("answered"), sum), (expected, 51 * 25));
        assert_eq!((inserted.await.expect("inserted"), copied.await.expect("copied")), (1, 1));
    }
}

async fn verbs(db: &Db, caller: i32) {
    let name = format!("q{caller}");
    db.create_queue(&name, &Settings::new("int8").max_batch(8)).await.expect("created");
    let queue = db.queue::<i64>(&name).await.expect("opened");
    let mut consumer = queue.consumer(Wait::Notify);
    let sent: Vec<i64> = (0..50).collect();
    assert!(join_all(sent.iter().map(|n| queue.enqueue(n))).await.iter().all(Result::is_ok));
    let mut seen = Vec::new();
    let mut held = consumer.lease(7).await.expect("leased");
    while !held.is_empty() {
        seen.extend(held.iter().map(|message| message.payload));
        let (next, lost) = queue.ack_and_lease(&held, 7).await.expect("exchanged");
        assert!(lost.is_empty());
        held = next;
    }
    seen.sort_unstable();
    assert_eq!(seen, sent);
}

#[tokio::test(flavor = "multi_thread")]
async fn notices_and_notifications_disturb_no_answer() {
    for level in ["notice", "debug1", "debug5"] {
        let url = database().await;
        let sql = connect(&url).await;
        sql.batch_execute(MAKE).await.expect("made");
        let name = url.split_whitespace().find_map(|word| word.strip_prefix("dbname=")).expect("it has a name");
        let alter = format!("alter database {name} set client_min_messages = {level}");
        superuser(&url).await.batch_execute(&alter).await.expect("set");
        let db = Db::connect(&url).await.expect("connected");
        let told = Statement::<(), (String,)>::new("select current_setting('client_min_messages')");
        assert_eq!(db.run(&told, ()).await.expect("told"), (level.to_owned(),));
        // Sends notifications from another session at the same time.
        let over = Arc::new(AtomicBool::new(false));
        let notifying = tokio::spawn({
            let over = over.clone();
            async move {
                while !over.load(Ordering::Relaxed) {
                    sql.execute("select pg_notify('here', 'from outside')", &[]).await.expect("notified");
                }
            }
        });
        join_all((0..6).map(|caller| {
            let db = db.clone();
            async move { tokio::join!(statements(&db, caller), verbs(&db, caller)) }
        }))
        .await;
        over.store(true, Ordering::Relaxed);
        notifying.await.expect("no panic");
    }
}
