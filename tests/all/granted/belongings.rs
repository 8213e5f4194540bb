//! Everything in the schema belongs to its owner, even if a superuser creates queues and limits.

use tokio_postgres::{Client, error::SqlState};
use trunkline::{Db, Limits, Settings};

use crate::fixture::{cluster, connect, empty_database, of_role, superuser};

const OWNER: &str = "Owner-1";

/// Returns the hint of a statement that is refused because of its role.
async fn hint(sql: &Client, statement: &str) -> String {
    let error = sql.batch_execute(statement).await.expect_err(statement);
    assert_eq!(error.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{statement}: {error:?}");
    let error = error.as_db_error().expect("of the server");
    assert!(error.message().contains(OWNER), "{error:?}");
    error.hint().expect("it has a hint").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_superuser_creates_nothing_that_the_owner_cannot_use() {
    let url = empty_database("belongings").await;
    let admin = superuser(&url).await;
    let role = format!("create role {OWNER:?} login; grant create on database belongings to {OWNER:?}");
    admin.batch_execute(&role).await.expect("created");
    let db = Db::connect(&of_role(&url, OWNER)).await.expect("connected");
    db.migrate().await.expect("migrated");
    db.create_queue("q", &Settings::new("int8")).await.expect("created");
    for call in ["create_queue('mine', 'int8')", "limit_queue('q', max_leased => 5)", "rebuild('q')"] {
        let hint = hint(&admin, &format!("select trunkline.{call}")).await;
        let (_, typed) = hint.split_once("after: ").expect("a statement to type");
        admin.batch_execute(&format!("{typed}; select trunkline.{call}; reset role")).await.expect(call);
    }
    let theirs = Db::connect(&of_role(&url, cluster().user())).await.expect("connected");
    let error = theirs.create_queue("more", &Settings::new("int8")).await.expect_err("not the owner").to_string();
    assert!(error.contains(OWNER) && error.contains("set role"), "{error}");
    // Calls of a superuser that create no object succeed, for example a call that changes nothing.
    theirs.create_queue("mine", &Settings::new("int8")).await.expect("it is there");
    theirs.pause_queue("q").await.expect("paused");
    theirs.resume_queue("q").await.expect("resumed");
    admin.batch_execute("select trunkline.alter_queue('q', max_attempts => 1)").await.expect("altered");
    theirs.limit_queue("q", &Limits::none().max_leased(7)).await.expect("changed");
    for name in ["q", "mine"] {
        let queue = db.queue::<i64>(name).await.expect("opened");
        queue.enqueue_many(&[1, 2, 3]).await.expect("enqueued");
        let leased = queue.lease(2).await.expect("leased");
        queue.archive(&leased[..1]).await.expect("held");
        queue.bury(&leased[1..], "no").await.expect("held");
        assert_eq!(queue.take(9).await.expect("taken").len(), 1, "{name}");
    }
    theirs.limit_queue("q", &Limits::none()).await.expect("removed");
    theirs.drop_queue("mine").await.expect("dropped");
    let others = "select count(*) from pg_class c, pg_roles r where c.relnamespace = 'trunkline'::regnamespace
                  and r.oid = c.relowner and r.rolname <> $1";
    assert_eq!(admin.query_one(others, &[&OWNER]).await.expect("read").get::<_, i64>(0), 0, "all is the owner's");
    admin.batch_execute("update trunkline.version set functions = ''").await.expect("as before a release");
    db.migrate().await.expect("the schema is the owner's");
    connect(&of_role(&url, OWNER)).await.batch_execute("select trunkline.rebuild('q')").await.expect("it may");
}
