//! A transactional outbox: the event is enqueued in the transaction that writes the order. No order without its event,
//! no event without its order.

use trunkline::{Db, Settings, Wait};

/// Places an order, and another that is rolled back; returns the events that were published.
pub async fn run(url: &str) -> Result<Vec<String>, Box<dyn std::error::Error + Send + Sync>> {
    let (mut client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute("create table orders (id int primary key)").await?;

    let db = Db::connect(url).await?;
    db.migrate().await?;
    db.create_queue("events", &Settings::new("text")).await?;
    let events = db.queue::<String>("events").await?;
    let publisher = tokio::spawn({
        let mut consumer = events.consumer(Wait::Notify);
        async move { consumer.at_most_once(10).await }
    });

    let failed = client.transaction().await?;
    failed.execute("insert into orders values (1)", &[]).await?;
    events.enqueue_in(&failed, "order 1 placed".to_owned()).await?;
    failed.rollback().await?;

    let placed = client.transaction().await?;
    placed.execute("insert into orders values (2)", &[]).await?;
    events.enqueue_in(&placed, "order 2 placed".to_owned()).await?;
    placed.commit().await?; // this wakes the publisher

    Ok(publisher.await??.into_iter().map(|event| event.payload).collect())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let cluster = trunkline_embedded::Cluster::temporary().start()?;
    let published = run(&cluster.url("postgres")).await?;
    assert_eq!(published, ["order 2 placed"]);
    println!("published: {published:?}");
    Ok(())
}
