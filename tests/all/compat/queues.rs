//! Queues work in transactions of the `compat` module.

use trunkline::{
    Db, Enqueued, Queue, Settings,
    postgres::compat::{NoTls, error::SqlState},
};

use crate::fixture::database;

#[tokio::test]
async fn queues_take_part_in_transactions() {
    let url = database().await;
    let db = Db::connect(&url).await.expect("connected");
    db.create_queue("jobs", &Settings::of::<String>()).await.expect("created");
    let jobs: Queue<String> = db.queue("jobs").await.expect("opened");
    let (mut client, connection) = trunkline::postgres::compat::connect(&url, NoTls).await.expect("connected");
    tokio::spawn(connection);
    for commit in [false, true] {
        let mut transaction = client.transaction().await.expect("begun");
        assert!(matches!(jobs.enqueue_in(&transaction, "a".to_owned()).await, Ok(Enqueued::New(_))));
        let savepoint = transaction.transaction().await.expect("set");
        jobs.enqueue_in(&savepoint, "undone".to_owned()).await.expect("enqueued");
        savepoint.rollback().await.expect("rolled back");
        let taken = jobs.take_in(&transaction, 10).await.expect("taken");
        assert_eq!(taken.iter().map(|message| &*message.payload).collect::<Vec<_>>(), ["a"]);
        jobs.enqueue_in(&transaction, "b".to_owned()).await.expect("enqueued");
        if commit {
            transaction.commit().await.expect("committed");
        }
    }
    let leased = jobs.lease(10).await.expect("leased");
    assert_eq!(leased.iter().map(|message| &*message.payload).collect::<Vec<_>>(), ["b"]);
    let transaction = client.transaction().await.expect("begun");
    jobs.ack_in(&transaction, &leased).await.expect("acknowledged");
    transaction.commit().await.expect("committed");

    db.drop_queue("jobs").await.expect("dropped");
    let transaction = client.transaction().await.expect("begun");
    let gone = jobs.enqueue_in(&transaction, "c".to_owned()).await.expect_err("no queue");
    assert!(gone.is_no_queue(), "{gone}");
    let over = jobs.enqueue_in(&transaction, "d".to_owned()).await.expect_err("the transaction has failed");
    assert_eq!(over.sqlstate(), Some(&SqlState::IN_FAILED_SQL_TRANSACTION), "{over}");
}
