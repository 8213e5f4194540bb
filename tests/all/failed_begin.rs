//! Tests transactions that fail before their first statement has run: nothing may be stored without
//! a transaction.

use trunkline::{
    Settings,
    postgres::{Insert, Statement},
};

use crate::{
    fixture::{Place, place},
    statements::table,
};

static INSERT: Statement<(i32,), u64> = Statement::new("insert into t values ($1)");
static COUNT: Statement<(), (i64,)> = Statement::new("select count(*) from t");
static NOWHERE: Statement<(), ()> = Statement::new("select * from nowhere");

#[tokio::test]
async fn modes_that_the_server_refuses_begin_no_transaction() {
    let db = table().await;
    for _ in 0..2 {
        let error = db.begin_with("isolation level serialisable").await.expect_err("a typo");
        assert!(error.to_string().contains("serialisable") && !error.is_outcome_unknown(), "{error}");
        let work = db.transact("read onyl", async |transaction| transaction.run(&INSERT, (1,)).await);
        assert!(work.await.expect_err("another").to_string().contains("onyl"));
    }
    for _ in 0..2 {
        let transaction = db.begin_with("isolation level serializable, read only").await.expect("begun");
        transaction.run(&INSERT, (1,)).await.expect_err("read only");
        transaction.commit().await.expect_err("failed");
    }
    assert_eq!(db.run(&COUNT, ()).await.expect("counted"), (0,));
}

#[tokio::test]
async fn statement_that_cannot_be_prepared_fails_the_transaction_at_any_place() {
    let db = table().await;
    for statements_before in [0, 1] {
        let transaction = db.begin().await.expect("begun");
        for n in 0..statements_before {
            transaction.send(&INSERT, (n,)).await.expect("sent");
        }
        let first = transaction.run(&NOWHERE, ()).await.expect_err("there is no such table").to_string();
        assert!(first.contains("nowhere"), "{first}");
        let rows = Insert::<(i32,)>::into("t", &["n"]);
        assert_eq!(transaction.run(&INSERT, (2,)).await.expect_err("failed").to_string(), first);
        assert!(transaction.insert_many(&rows, [(3,)]).await.is_err() || statements_before > 0);
        assert_eq!(transaction.commit().await.expect_err("failed").to_string(), first);
        // The connection is intact, and another transaction uses it.
        let transaction = db.begin().await.expect("begun");
        transaction.run(&NOWHERE, ()).await.expect_err("there is no such table");
        transaction.rollback().await.expect("rolled back");
        assert_eq!(db.run(&COUNT, ()).await.expect("counted"), (0,));
    }
}

#[tokio::test]
async fn copies_by_run_are_refused_and_neighbours_go_on() {
    let Place { db, .. } = place::<i64>(Settings::new("int8")).await;
    let seven = Statement::<(), (i32,)>::new("select 7");
    for text in ["copy pg_class from stdin", "COPY (select 1) TO STDOUT"] {
        let copy = Statement::<(), Vec<(i32,)>>::new(text);
        let (one, refused, other) = tokio::join!(db.run(&seven, ()), db.run(&copy, ()), db.run(&seven, ()));
        let error = refused.expect_err("it is no such statement");
        assert!(error.to_string().contains("copy_in") && !error.is_outcome_unknown(), "{error}");
        assert_eq!((one.expect("read"), other.expect("read")), ((7,), (7,)));
        let transaction = db.begin().await.expect("begun");
        transaction.run(&copy, ()).await.expect_err("nor here");
    }
}

#[tokio::test]
async fn bounds_of_transactions_are_refused_and_change_nothing() {
    let db = table().await;
    let seven = Statement::<(), (i32,)>::new("select 7");
    for text in ["commit", "ROLLBACK", "end", "begin", "start transaction", "prepare transaction 'a'", "/* */ abort"] {
        let bound = Statement::<(), ()>::new(text);
        let transaction = db.begin().await.expect("begun");
        transaction.run(&INSERT, (1,)).await.expect("inserted");
        let error = transaction.run(&bound, ()).await.expect_err("refused");
        assert!(error.to_string().contains("Transaction::commit") && !error.is_outcome_unknown(), "{text}: {error}");
        transaction.rollback().await.expect("it is still open");
        assert_eq!(db.run(&COUNT, ()).await.expect("counted"), (0,), "{text}");
        let (one, refused, other) = tokio::join!(db.run(&seven, ()), db.run(&bound, ()), db.run(&seven, ()));
        assert!(refused.expect_err("refused").to_string().contains("Db::begin"), "{text}");
        assert_eq!((one.expect("read"), other.expect("read")), ((7,), (7,)), "neighbours go on");
    }
    let savepoints = ["savepoint s", "rollback to s", "rollback work to savepoint s"];
    let transaction = db.begin().await.expect("begun");
    for text in savepoints {
        transaction.run(&Statement::<(), ()>::new(text), ()).await.expect("within the transaction");
    }
    transaction.rollback().await.expect("rolled back");
    assert_eq!(db.run(&COUNT, ()).await.expect("counted"), (0,));
}
