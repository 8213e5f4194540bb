//! A transactional outbox: the event is enqueued in the transaction that writes the order, and a
//! worker delivers it. No order without its event, no event without its order.

use tokio::sync::mpsc;
use trunkline::{
    Db, Message, Queue, Result, Settings, Worker,
    postgres::{Statement, Transaction},
};

static TABLE: Statement<(), ()> = Statement::new("create table orders (id int primary key)");
static PLACE: Statement<(i32,), u64> = Statement::new("insert into orders values ($1)");

/// Places two orders, and one between them that is rolled back; returns the events that were
/// delivered.
pub async fn run(url: &str) -> Result<Vec<String>> {
    let db = Db::connect(url).await?;
    db.run(&TABLE, ()).await?;
    db.migrate().await?;
    db.create_queue("events", &Settings::of::<String>()).await?;
    let events = db.queue::<String>("events").await?;

    place(&db, &events, 1).await?.commit().await?; // begin, insert, enqueue and commit are one round trip
    place(&db, &events, 2).await?.rollback().await?;
    place(&db, &events, 3).await?.commit().await?;

    let (deliver, mut delivered) = mpsc::unbounded_channel();
    let worker = Worker::new(events, move |event: Message<String>| {
        let sent = deliver.send(event.payload); // to wherever events go
        async move { sent }
    });
    let mut all = Vec::new();
    let both = async {
        while all.len() < 2 {
            all.extend(delivered.recv().await);
        }
    };
    worker.concurrency(1).run(both).await?;
    Ok(all)
}

async fn place(db: &Db, events: &Queue<String>, order: i32) -> Result<Transaction> {
    let transaction = db.begin().await?;
    transaction.send(&PLACE, (order,)).await?;
    events.send_enqueue_many(&transaction, &[format!("order {order} placed")]).await?.await?;
    Ok(transaction)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = trunkline_embedded::Cluster::temporary().start()?;
    let mut delivered = run(&cluster.url("postgres")).await?;
    delivered.sort(); // what a worker gives back, because it would not start soon, comes behind the others
    assert_eq!(delivered, ["order 1 placed", "order 3 placed"]);
    println!("delivered: {delivered:?}");
    Ok(())
}
