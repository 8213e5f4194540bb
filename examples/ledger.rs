//! Exactly once into a final table, in batches: one transaction takes the messages and writes their
//! entries.

use trunkline::{
    Db, Failure, Json, Message, Result, Settings, Wait,
    postgres::{Insert, Statement, Transaction},
};

static TABLE: Statement<(), ()> =
    Statement::new("create table entry (id bigint primary key, cents bigint not null, book text not null)");
static WRITE: Insert<(i64, i64, String)> = Insert::into("entry", &["id", "cents", "book"]);
static SUM: Statement<(), (i64, i64)> = Statement::new("select count(*), sum(cents)::bigint from entry");

type Posting = Json<(String, i64)>;

/// Posts ten thousand cents in batches, one of which fails. Returns the number of entries and their
/// sum.
pub async fn run(url: &str) -> Result<(i64, i64)> {
    let db = Db::connect(url).await?;
    db.run(&TABLE, ()).await?;
    db.migrate().await?;
    db.create_queue("postings", &Settings::of::<Posting>()).await?;
    let postings = db.queue::<Posting>("postings").await?;
    let cents: Vec<Posting> = (0..10_000).map(|n| Json((format!("book {}", n % 3), 1))).collect();
    postings.enqueue_many(&cents).await?;

    let mut consumer = postings.consumer(Wait::Adaptive);
    let (mut written, mut breaks) = (0, true);
    while written < cents.len() {
        let broken = std::mem::take(&mut breaks);
        written += consumer.take_with(1_000, |transaction, batch| Box::pin(write(transaction, batch, broken))).await?;
    }
    db.run(&SUM, ()).await
}

async fn write(transaction: &Transaction, batch: Vec<Message<Posting>>, broken: bool) -> Result<usize, Failure> {
    let count = batch.len();
    let row = |message: Message<Posting>| (message.id, message.payload.0.1, message.payload.0.0);
    drop(transaction.insert_many(&WRITE, batch.into_iter().map(row)).await?);
    // An error here undoes the entries and leaves the messages in the queue. They are then
    // delivered one at a time.
    if broken && count > 1 { Err(Failure::retry("half way")) } else { Ok(count) }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = trunkline_embedded::Cluster::temporary().start()?;
    assert_eq!(run(&cluster.url("postgres")).await?, (10_000, 10_000));
    Ok(())
}
