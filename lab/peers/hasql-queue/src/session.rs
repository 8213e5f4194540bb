use std::{future::poll_fn, sync::Arc};

use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio_postgres::{
    AsyncMessage, Client, NoTls, Row, Statement,
    types::{Json, Type},
};
use trunkline_contender::{Failure, Tally};

/// The schema from `Hasql.Queue.Migrate`, with jsonb as the type of values.
const SCHEMA: &str = "
create function notify_on(channel text) returns void language plpgsql as
  $$ begin execute (format('notify %I', channel)); end $$;
create function listen_on(channel text) returns void language plpgsql as
  $$ begin execute (format('listen %I', channel)); end $$;
create type state_t as enum ('enqueued', 'failed');
create sequence modified_index start 1;
create table payloads (
  id bigserial primary key,
  attempts int not null default 0,
  state state_t not null default 'enqueued',
  modified_at int8 not null default nextval('modified_index'),
  value jsonb not null);
create index active_modified_at_idx on payloads using btree (modified_at) where (state = 'enqueued');";

// A single message has its own statements, because they are faster.
const ENQUEUE_ONE: &str = "insert into payloads (attempts, value) values (0, $1)";
const ENQUEUE_MANY: &str = "insert into payloads (attempts, value) select 0, * from unnest($1)";
const DEQUEUE_ONE: &str = "delete from payloads where id = (
  select p1.id from payloads as p1 where p1.state = 'enqueued' order by p1.modified_at asc
  for update skip locked limit 1) returning value";
const DEQUEUE_MANY: &str = "delete from payloads where id in (
  select p1.id from payloads as p1 where p1.state = 'enqueued' order by p1.modified_at asc
  for update skip locked limit $1) returning value";
const NOTIFY: &str = "select notify_on('channel')";

/// The table to which the exactly-once case moves payloads. `RECORD` inserts them in the
/// transaction of the dequeue.
const LEDGER: &str = "create table ledger (id bigint generated always as identity primary key, body jsonb not null)";
const RECORD: &str = "insert into ledger (body) select unnest($1::jsonb[])";

pub async fn make_ledger(url: &str) -> Result<(), Failure> {
    connect(url, Arc::default()).await?.batch_execute(LEDGER).await?;
    Ok(())
}

pub async fn migrate(url: &str) -> Result<(), Failure> {
    connect(url, Arc::default()).await?.batch_execute(SCHEMA).await?;
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The high throughput API, without notifications.
    High,
    /// The low throughput API, with notifications.
    Low,
}

/// A connection with its prepared statements.
pub struct Session {
    client: Client,
    mode: Mode,
    notified: Arc<Notify>,
    enqueue_one: Statement,
    enqueue_many: Statement,
    dequeue_one: Statement,
    dequeue_many: Statement,
    notify: Statement,
}

impl Session {
    pub async fn connect(url: &str, mode: Mode) -> Result<Self, Failure> {
        let notified = Arc::default();
        let client = connect(url, Arc::clone(&notified)).await?;
        Ok(Self {
            mode,
            notified,
            enqueue_one: client.prepare(ENQUEUE_ONE).await?,
            enqueue_many: client.prepare_typed(ENQUEUE_MANY, &[Type::JSONB_ARRAY]).await?,
            dequeue_one: client.prepare(DEQUEUE_ONE).await?,
            dequeue_many: client.prepare(DEQUEUE_MANY).await?,
            notify: client.prepare(NOTIFY).await?,
            client,
        })
    }

    pub async fn enqueue(&self, payloads: Vec<String>) -> Result<(), Failure> {
        self.insert(payloads).await?;
        if self.mode == Mode::Low {
            self.client.execute(&self.notify, &[]).await?;
        }
        Ok(())
    }

    pub async fn insert(&self, payloads: Vec<String>) -> Result<(), Failure> {
        let values: Vec<_> = payloads.into_iter().map(RawValue::from_string).collect::<Result<_, _>>()?;
        let values: Vec<_> = values.iter().map(Json).collect();
        match values.as_slice() {
            [value] => self.client.execute(&self.enqueue_one, &[value]).await?,
            values => self.client.execute(&self.enqueue_many, &[&values]).await?,
        };
        Ok(())
    }

    pub async fn dequeue(&self, n: usize) -> Result<Vec<Row>, Failure> {
        Ok(match n {
            1 => self.client.query(&self.dequeue_one, &[]).await?,
            _ => self.client.query(&self.dequeue_many, &[&i64::try_from(n)?]).await?,
        })
    }

    /// Listens once. The library starts and stops listening around each dequeue. This peer omits
    /// these two statements, in hasql-queue's favour.
    pub async fn listen(&self) -> Result<(), Failure> {
        if self.mode == Mode::Low {
            self.client.execute("select listen_on('channel')", &[]).await?;
        }
        Ok(())
    }

    pub async fn consume(&self, batch: usize, tally: &Tally) -> Result<(), Failure> {
        while !tally.is_over() {
            match self.mode {
                Mode::High => receive(&self.dequeue(batch).await?, tally)?,
                Mode::Low => self.dequeue_or_wait(batch, tally).await?,
            }
        }
        Ok(())
    }

    /// Dequeues messages and calls the handler inside the transaction, so that a failing handler
    /// puts the messages back.
    async fn dequeue_or_wait(&self, batch: usize, tally: &Tally) -> Result<(), Failure> {
        self.client.batch_execute("begin; savepoint temp").await?;
        let rows = self.dequeue(batch).await?;
        receive(&rows, tally)?;
        self.client.batch_execute("commit").await?;
        if rows.is_empty() {
            tokio::select! {
                () = self.notified.notified() => {}
                () = tally.over() => {}
            }
        }
        Ok(())
    }

    /// Dequeues and writes to the final table in one transaction. A message counts once the
    /// transaction is committed.
    pub async fn record(&self, batch: usize, tally: &Tally) -> Result<(), Failure> {
        self.client.batch_execute("begin").await?;
        let rows = self.dequeue(batch).await?;
        if !rows.is_empty() {
            let values: Vec<Json<&RawValue>> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
            self.client.execute(RECORD, &[&values]).await?;
        }
        self.client.batch_execute("commit").await?;
        receive(&rows, tally)
    }

    pub async fn vacuum(&self) -> Result<(), Failure> {
        self.client.batch_execute("vacuum full analyze payloads").await?;
        Ok(())
    }
}

fn receive(rows: &[Row], tally: &Tally) -> Result<(), Failure> {
    let values: Vec<Json<&RawValue>> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    tally.received_many(values.iter().map(|value| value.0.get()));
    Ok(())
}

/// Connects. Signals `notified` at every notification, and at the end of the connection.
async fn connect(url: &str, notified: Arc<Notify>) -> Result<Client, Failure> {
    let (client, mut connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
            if let AsyncMessage::Notification(_) = message {
                notified.notify_one();
            }
        }
        // Wakes a waiting consumer: its next statement then fails with the reason.
        notified.notify_one();
    });
    Ok(client)
}
