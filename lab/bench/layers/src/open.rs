use trunkline::{Db, Queue, Settings, Wait, postgres::Statement};
use trunkline_contender::{Failure, Ready, Settings as Told, Wait as How, payloads};

use crate::payload::{Text, all};

/// Creates the table in which each taken message must appear once.
static LEDGER: Statement<(), ()> = Statement::new("create table ledger (id bigint primary key, body jsonb not null)");

/// Copies the existing row `$1` times. `EMPTY` then deletes all rows while the runner holds a
/// snapshot. The result is the same number of dead rows that a snapshot held for a long time would
/// have left.
static FILL: Statement<(i64,), ()> = Statement::new(
    "insert into trunkline.queue_bench (size, payload) select q.size, q.payload from trunkline.queue_bench q, generate_series(1, $1::bigint)",
);
static EMPTY: Statement<(), ()> = Statement::new("delete from trunkline.queue_bench");

/// Migrates the database and creates the queue `bench`. Returns the queue and the description of
/// the contender.
pub async fn open<T: Text>(told: &Told, how: &str) -> Result<(Queue<T>, Ready), Failure> {
    open_as(told, how, &Settings::new(T::TYPE)).await
}

/// Opens the queue like [`open`], but with these settings.
pub async fn open_as<T: Text>(told: &Told, how: &str, settings: &Settings) -> Result<(Queue<T>, Ready), Failure> {
    let db = Db::connect(&told.url).await?;
    db.migrate().await?;
    db.create_queue("bench", settings).await?;
    if told.case == "ledger" {
        db.run(&LEDGER, ()).await?;
    }
    let queue = db.queue("bench").await?;
    if told.dead > 0 {
        queue.enqueue_many(&all::<T>(payloads(1, told.payload))?).await?;
        db.run(&FILL, (told.dead as i64,)).await?;
        db.run(&EMPTY, ()).await?;
    }
    let version = concat!("Trunkline ", env!("CARGO_PKG_VERSION")).to_owned();
    let settings = format!("{how}; a queue of {}, {:?}", T::TYPE, wait(told));
    Ok((queue, Ready { version, settings }))
}

pub fn wait(told: &Told) -> Wait {
    match told.wait {
        How::Best => Wait::Adaptive,
        How::Poll => Wait::poll(),
        How::Notify => Wait::Notify,
    }
}
