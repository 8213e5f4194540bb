//! The errors that newcomers see name the difference, the missing part, and the next step.

use std::time::Duration;

use tokio::time::timeout;
use trunkline::{Db, Settings, postgres::Statement};

use crate::fixture::{SOON, database, db, empty_database, of_role, superuser};

#[tokio::test(flavor = "multi_thread")]
async fn error_for_an_existing_queue_names_the_differing_settings() {
    let db = db().await;
    let settings = || Settings::new("jsonb").max_attempts(5).lease(Duration::from_secs(60));
    db.create_queue("q", &settings()).await.expect("created");
    db.create_queue("q", &settings()).await.expect("it is the same");
    for (asked, said, unsaid) in [
        (settings().max_attempts(7), vec!["max_attempts is 5, not 7"], vec!["lease", "payload is"]),
        (settings().lease(Duration::from_secs(90)), vec!["lease is 00:01:00, not 00:01:30"], vec!["max_attempts"]),
        (
            Settings::new("text").priorities(3).uniqueness(true),
            vec![
                "payload is jsonb, not text",
                "priorities is 1, not 3",
                "uniqueness is false, not true",
                "max_attempts is 5, not 10",
                "lease is 00:01:00, not 00:00:30",
            ],
            vec!["max_batch"],
        ),
    ] {
        let error = db.create_queue("q", &asked).await.expect_err("it is another").to_string();
        assert!(error.contains("queue 'q' already exists"), "{error}");
        assert!(said.iter().all(|word| error.contains(word)), "{error} says {said:?}");
        assert!(!unsaid.iter().any(|word| error.contains(word)), "{error} does not say {unsaid:?}");
        assert!(error.contains("trunkline.alter_queue"), "{error}");
    }
    db.create_queue("arrays", &Settings::new("int8[]")).await.expect("created");
    db.create_queue("arrays", &Settings::new("int8[]")).await.expect("it is the same");
    let error = db.create_queue("arrays", &Settings::new("int4[]")).await.expect_err("it is another").to_string();
    assert!(error.contains("not integer[]"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_migration_without_the_right_says_which_is_missing() {
    let url = empty_database("unmigrated").await;
    superuser(&url).await.batch_execute("create role newcomer login").await.expect("created");
    let db = Db::connect(&of_role(&url, "newcomer")).await.expect("connected");
    let error = db.migrate().await.expect_err("it may not").to_string();
    assert!(error.contains("has no Trunkline schema yet") && error.contains("grant create on database"), "{error}");
    assert!(!error.contains("owns the schema"), "{error}");
}

/// The server goes on running the statement of a dropped call. So later calls must not wait for it
/// on the same connection.
#[tokio::test(flavor = "multi_thread")]
async fn statement_of_a_gone_caller_holds_up_no_other() {
    static SLEEP: Statement<(), ()> = Statement::new("select pg_sleep(60)");
    static ONE: Statement<(), (i32,)> = Statement::new("select 1");
    let url = database().await;
    let db = Db::connect(&url).await.expect("connected");
    for _ in 0..2 {
        assert_eq!(db.run(&ONE, ()).await.expect("answered"), (1,));
    }
    timeout(Duration::from_millis(300), db.run(&SLEEP, ())).await.expect_err("dropped");
    for _ in 0..20 {
        let answer = timeout(SOON, db.run(&ONE, ())).await.expect("on the other connection");
        assert_eq!(answer.expect("answered"), (1,));
    }
    let admin = superuser(&url).await;
    let end = "select pg_terminate_backend(pid) from pg_stat_activity
               where datname = current_database() and query like '%pg_sleep(60)%' and pid <> pg_backend_pid()";
    admin.execute(end, &[]).await.expect("ended");
}
