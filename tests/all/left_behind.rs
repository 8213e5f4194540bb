//! Connections are reused. Settings and temporary tables that a statement or a transaction makes
//! for its session are removed before the next caller uses the connection.

use trunkline::{Db, postgres::Statement};

use crate::{
    fixture::{connect, database, eventually},
    statements::table,
};

type Nothing = Statement<(), ()>;

#[tokio::test]
async fn a_setting_holds_for_its_own_statement_only() {
    let db = table().await;
    let shown = Statement::<(), (String, String)>::new("select current_setting('search_path'), current_user::text");
    let before = db.run(&shown, ()).await.expect("shown");
    let role = format!("set_by_run_{}", std::process::id());
    for text in [
        format!("create role {role}"),
        format!("set role {role}"),
        "SET search_path = nowhere".to_owned(),
        "/* a */ -- comment\n set session search_path to nowhere".to_owned(),
        "select set_config('search_path', 'nowhere', false)".to_owned(),
        "do $$ begin set search_path = nowhere; end $$".to_owned(),
    ] {
        // Repeats the test for each of the connections that statements share.
        for _ in 0..2 {
            let ran = db.run(&Nothing::of(text.clone()), ()).await;
            assert!(ran.is_ok() || text.starts_with("create"), "{text}: {ran:?}");
        }
        for _ in 0..4 {
            assert_eq!(db.run(&shown, ()).await.expect("shown"), before, "{text}");
        }
    }
    db.run(&Nothing::of(format!("drop role {role}")), ()).await.expect("dropped");
}

#[tokio::test]
async fn session_settings_of_a_transaction_end_with_it() {
    type Shown = (i32, String, String, String, String);
    static SHOWN: Statement<(), Shown> = Statement::new(
        "select pg_backend_pid(), current_user::text, current_setting('search_path'), current_setting('jit'),
         current_setting('default_transaction_isolation')",
    );
    let db = table().await;
    let role = format!("set_by_transaction_{}", std::process::id());
    db.run(&Nothing::of(format!("create role {role}")), ()).await.expect("created");
    let shown = async || {
        let transaction = db.begin().await.expect("begun");
        let shown = transaction.run(&SHOWN, ()).await.expect("shown");
        transaction.commit().await.expect("committed");
        shown
    };
    let before = shown().await;
    for text in [
        format!("set role {role}"),
        format!("set session authorization {role}"),
        "Set search_path to nowhere".to_owned(),
        "select set_config('search_path', 'nowhere', false)".to_owned(),
        "reset jit".to_owned(),
        "set default_transaction_isolation = serializable".to_owned(),
        "set session characteristics as transaction isolation level serializable".to_owned(),
    ] {
        for end in ["commit", "rollback", "dropped"] {
            let transaction = db.begin().await.expect("begun");
            transaction.run(&Nothing::of(text.clone()), ()).await.expect("set");
            match end {
                "commit" => transaction.commit().await.expect("committed"),
                "rollback" => transaction.rollback().await.expect("rolled back"),
                _ => drop(transaction),
            }
            assert_eq!(shown().await, before, "{text}, {end}: the same connection, as it was");
        }
    }
    // A setting that is local to the transaction needs no reset, and takes effect.
    let transaction = db.begin().await.expect("begun");
    transaction.run(&Nothing::of(format!("set local role {role}")), ()).await.expect("set");
    let during = transaction.run(&SHOWN, ()).await.expect("shown");
    assert_eq!(during.1, role);
    transaction.commit().await.expect("committed");
    assert_eq!(shown().await, before);
    db.run(&Nothing::of(format!("drop role {role}")), ()).await.expect("dropped");
}

#[tokio::test]
async fn temporary_table_is_not_left_to_the_next_caller() {
    let db = table().await;
    let count = Statement::<(), (i64,)>::new("select count(*) from t");
    for text in
        ["create temp table t as select 1 as n", "select 1 as n into temporary t", "create table pg_temp.t (n int)"]
    {
        for _ in 0..3 {
            db.run(&Nothing::new(text), ()).await.expect(text); // on both connections that statements share
            assert_eq!(db.run(&count, ()).await.expect("counted"), (0,), "{text}");
        }
        for end in ["commit", "dropped", "commit"] {
            let transaction = db.begin().await.expect("begun");
            transaction.run(&Nothing::new(text), ()).await.expect(text);
            transaction.run(&Nothing::new("insert into t values (1)"), ()).await.expect("inserted");
            match end {
                "commit" => transaction.commit().await.expect("committed"),
                _ => drop(transaction),
            }
        }
        let transaction = db.begin().await.expect("begun");
        assert_eq!(transaction.run(&count, ()).await.expect("counted"), (0,), "{text}");
        transaction.commit().await.expect("committed");
    }
}

#[tokio::test]
async fn session_lock_is_not_left_to_the_next_transaction() {
    let url = database().await;
    let (db, sql) = (Db::connect(&url).await.expect("connected"), connect(&url).await);
    let transaction = db.begin().await.expect("begun");
    transaction.run(&Nothing::new("select pg_advisory_lock(77)"), ()).await.expect("locked");
    transaction.commit().await.expect("committed");
    eventually("it is free", || async {
        sql.query_one("select pg_try_advisory_lock(77)", &[]).await.expect("tried").get(0)
    })
    .await;
}
