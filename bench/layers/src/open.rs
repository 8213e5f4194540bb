use trunkline::{Db, Queue, Settings, Statement, Wait};
use trunkline_contender::{Failure, Ready, Settings as Told, Wait as How};

use crate::payload::Text;

/// The final table of messages that are taken once.
static LEDGER: Statement<(), ()> = Statement::new("create table ledger (id bigint primary key, body jsonb not null)");

/// The migrated database's queue `bench`, and what to say of it.
pub async fn open<T: Text>(told: &Told, how: &str) -> Result<(Queue<T>, Ready), Failure> {
    let db = Db::connect(&told.url).await?;
    db.migrate().await?;
    db.create_queue("bench", &Settings::new(T::TYPE)).await?;
    if told.case == "ledger" {
        db.run(&LEDGER, ()).await?;
    }
    let version = concat!("Trunkline ", env!("CARGO_PKG_VERSION")).to_owned();
    let settings = format!("{how}; a queue of {}, {:?}", T::TYPE, wait(told));
    Ok((db.queue("bench").await?, Ready { version, settings }))
}

pub fn wait(told: &Told) -> Wait {
    match told.wait {
        How::Best => Wait::Adaptive,
        How::Poll => Wait::poll(),
        How::Notify => Wait::Notify,
    }
}
