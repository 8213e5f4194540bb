//! Backups by `pg_dump` as a role that does not own the schema, and with the definitions and the
//! data in separate files.

use trunkline::Db;

use super::{fill, goes_on, server::Server, tools::Tools};
use crate::fixture::connect;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs pg_dump and psql: see .ci/versions"]
async fn definitions_and_data_are_restored_one_after_the_other() {
    let tools = Tools::found(&["pg_dump", "psql"]);
    let server = || Server::start(Some(tools.binaries()), &[]);
    let (here, there) = (server(), server());
    let left = fill(&Db::connect(&here.url()).await.expect("connected")).await;
    for part in ["--schema-only", "--data-only"] {
        let dump = tools.run("pg_dump", &[part, "--dbname", &here.url()], "");
        let restore = ["--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1", "--dbname", &there.url()];
        tools.run("psql", &restore, &dump);
    }
    let sql = connect(&there.url()).await;
    sql.batch_execute("select trunkline.rebuild(name) from trunkline.queue").await.expect("rebuilt");
    let db = Db::connect(&there.url()).await.expect("connected");
    db.migrate().await.expect("there is nothing to do");
    goes_on(&db.queue("q").await.expect("opened"), &left).await;
    let error =
        sql.batch_execute("insert into trunkline.migration (version, name, functions) values (16, 'x', 'x')").await;
    let error = error.expect_err("programs of 0.1.0 are refused as before");
    assert!(error.as_db_error().expect("the server's").message().contains("newer than this program"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs pg_dump and psql: see .ci/versions"]
async fn role_that_may_read_everything_dumps_with_row_security() {
    let tools = Tools::found(&["pg_dump", "psql"]);
    let server = || Server::start(Some(tools.binaries()), &[]);
    let (here, there) = (server(), server());
    let left = fill(&Db::connect(&here.url()).await.expect("connected")).await;
    let sql = connect(&here.url()).await;
    sql.batch_execute("create role backup login in role pg_read_all_data").await.expect("created");
    let dump = tools.run("pg_dump", &["--enable-row-security", "--dbname", &format!("{} user=backup", here.url())], "");
    tools.run("psql", &["--quiet", "--set=ON_ERROR_STOP=1", "--dbname", &there.url()], &dump);
    let db = Db::connect(&there.url()).await.expect("connected");
    db.migrate().await.expect("there is nothing to do");
    goes_on(&db.queue("q").await.expect("opened"), &left).await;
}
