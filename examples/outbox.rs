//! A transactional outbox: the transaction that writes an order also enqueues its event, and a
//! worker delivers the event. So no order lacks its event, and no event lacks its order.

use tokio::sync::mpsc;
use trunkline::{
    Db, Message, Queue, Result, Settings, Worker,
    postgres::{Statement, Transaction},
};

static TABLE: Statement<(), ()> = Statement::new("create table orders (id int primary key)");
static PLACE: Statement<(i32,), u64> = Statement::new("insert into orders values ($1)");

/// Places three orders, the second of which is rolled back. Returns the delivered events.
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
        let sent = deliver.send(event.payload); // stands for the delivery to another system
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
    delivered.sort(); // the order is not fixed: messages that a worker gives back are delivered later
    assert_eq!(delivered, ["order 1 placed", "order 3 placed"]);
    println!("delivered: {delivered:?}");
    Ok(())
}
