//! The errors of a connection that the server has ended.

use tokio::time::timeout;
use trunkline::{
    Settings,
    postgres::compat::{self, NoTls, error::SqlState},
};

use super::connect;
use crate::fixture::{Place, SOON, place};

const END: &str = "select pg_terminate_backend(pg_backend_pid())";

#[tokio::test]
async fn calls_after_the_last_error_find_the_connection_closed() {
    let (client, connection) = connect().await;
    let first = client.batch_execute(END).await;
    timeout(SOON, connection).await.expect("it ends").expect("no panic").expect_err("the server has ended it");
    for outcome in [first, client.query("select 1", &[]).await.map(drop), client.check_connection().await] {
        let error = outcome.expect_err("the connection has ended");
        assert!(error.is_closed(), "{error}");
        assert_eq!(error.code(), Some(&SqlState::ADMIN_SHUTDOWN), "{error}");
        assert!(error.as_db_error().is_some(), "{error}");
    }
}

#[tokio::test]
async fn queue_finds_the_connection_of_its_transaction_closed() {
    let Place { queue, url, .. } = place::<i64>(Settings::new("int8")).await;
    let (mut client, connection) = compat::connect(&url, NoTls).await.expect("connected");
    tokio::spawn(connection);
    let transaction = client.transaction().await.expect("begun");
    transaction.batch_execute(END).await.expect_err("the session has ended");
    let error = queue.enqueue_in(&transaction, 1).await.expect_err("the connection has ended");
    assert!(error.is_closed(), "{error}");
    assert_eq!(error.sqlstate(), Some(&SqlState::ADMIN_SHUTDOWN), "{error}");
}
