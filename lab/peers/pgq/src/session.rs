use std::time::Duration;

use tokio_postgres::{Client, NoTls, Statement};
use trunkline_contender::{Failure, Tally};

use crate::ticker::Ticker;

/// The queue, its only consumer, and a function that inserts many events into the current event
/// table, as PgQ permits. One call of `pgq.insert_event` per event would cost three times as much.
pub const SCHEMA: &str = "
create extension pgq;
select pgq.create_queue('bench'), pgq.register_consumer('bench', 'consumer');
select pgq.set_queue_config('bench', 'ticker_max_lag', '0'), pgq.set_queue_config('bench', 'ticker_idle_period', '1 second');
create function insert_events(data text[]) returns void language plpgsql as $$ begin
  execute format('insert into %s (ev_time, ev_type, ev_data) select now(), ''message'', unnest($1)',
    pgq.current_event_table('bench')) using data;
end $$;";

const INSERT_ONE: &str = "select pgq.insert_event('bench', 'message', $1)";
const INSERT_MANY: &str = "select insert_events($1)";
const NEXT_BATCH: &str = "select pgq.next_batch('bench', 'consumer')";
const EVENTS: &str = "select ev_data from pgq.get_batch_events($1)";
const FINISH_BATCH: &str = "select pgq.finish_batch($1)";

/// The time that a consumer sleeps if there is no batch. It equals the ticker's period.
const SLEEP: Duration = Duration::from_millis(10);

/// A connection with its prepared statements.
pub struct Session {
    client: Client,
    insert_one: Statement,
    insert_many: Statement,
    next_batch: Statement,
    events: Statement,
    finish_batch: Statement,
}

impl Session {
    pub async fn connect(url: &str) -> Result<Self, Failure> {
        let client = connect(url).await?;
        Ok(Self {
            insert_one: client.prepare(INSERT_ONE).await?,
            insert_many: client.prepare(INSERT_MANY).await?,
            next_batch: client.prepare(NEXT_BATCH).await?,
            events: client.prepare(EVENTS).await?,
            finish_batch: client.prepare(FINISH_BATCH).await?,
            client,
        })
    }

    pub async fn insert(&self, payloads: Vec<String>) -> Result<(), Failure> {
        match payloads.as_slice() {
            [payload] => self.client.execute(&self.insert_one, &[payload]).await?,
            payloads => self.client.execute(&self.insert_many, &[&payloads]).await?,
        };
        Ok(())
    }

    pub async fn consume(&self, ticker: &Ticker, tally: &Tally) -> Result<(), Failure> {
        while !tally.is_over() {
            let batch: Option<i64> = self.client.query_one(&self.next_batch, &[]).await?.try_get(0)?;
            let Some(batch) = batch else {
                ticker.check()?;
                tokio::time::sleep(SLEEP).await;
                continue;
            };
            let rows = self.client.query(&self.events, &[&batch]).await?;
            let events: Vec<&str> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
            tally.received_many(events);
            self.client.execute(&self.finish_batch, &[&batch]).await?;
        }
        Ok(())
    }
}

pub async fn connect(url: &str) -> Result<Client, Failure> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}
