//! A role that runs the library needs CREATE on its database, and no further right.

use trunkline::{Db, postgres::Statement};

use crate::{
    contract::WAITS,
    fixture::{cluster, connect, of_role},
    versions::{run_statements, use_queue},
};

#[tokio::test(flavor = "multi_thread")]
async fn role_with_create_alone_migrates_and_uses_every_verb() {
    let admin = connect(&cluster().url("postgres")).await;
    // Revokes even the rights that every role has by default.
    for sql in [
        "create role plain login",
        "create database of_plain",
        "revoke all on database of_plain from public",
        "grant connect, create on database of_plain to plain",
    ] {
        admin.batch_execute(sql).await.expect("done");
    }
    let url = crate::fixture::settled(&cluster().url("of_plain"));
    connect(&url).await.batch_execute("revoke all on schema public from public").await.expect("revoked");

    let db = Db::connect(&format!("{} options='-c search_path=app'", of_role(&url, "plain"))).await.expect("connected");
    let me = Statement::<(), (String, bool)>::new(
        "select rolname::text, rolsuper from pg_roles where rolname = current_user",
    );
    assert_eq!(db.run(&me, ()).await.expect("told"), ("plain".into(), false));
    db.migrate().await.expect("migrated");
    // The application has its own tables, in its own schema.
    db.run(&Statement::<(), ()>::new("create schema app"), ()).await.expect("created");
    run_statements(&db).await;
    for wait in WAITS {
        use_queue(&db, wait).await;
    }
    db.migrate().await.expect("once more");
}
