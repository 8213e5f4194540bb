//! Callers that run in separate processes, and the code that they share.

use std::sync::Arc;

use tokio_postgres::{Client, NoTls, Statement};
use trunkline::Db;
use trunkline_contender::{Contender, Failure, Ready, Settings, Tally};

use crate::{
    payload::{Document, Text},
    queue::Queue,
};

/// The table of hasql-queue, from `Hasql.Queue.Migrate`, as a plain table without the library.
const PLAIN: &str = "
create type state_t as enum ('enqueued', 'failed');
create sequence modified_index start 1;
create table payloads (
  id bigserial primary key,
  attempts int not null default 0,
  state state_t not null default 'enqueued',
  modified_at int8 not null default nextval('modified_index'),
  value jsonb not null);
create index active_modified_at_idx on payloads using btree (modified_at) where (state = 'enqueued');";
const INSERT: &str = "insert into payloads (attempts, value) values (0, $1::text::jsonb)";
/// Notifies the channel on which a sleeping consumer of the queue listens.
const INSERT_AND_NOTIFY: &str =
    "with inserted as (insert into payloads (attempts, value) values (0, $1::text::jsonb) returning id)
    select pg_notify('trunkline.bench', '') from inserted";

/// Creates the queue and the plain table for the callers, and consumes the callers' messages.
pub struct Processes(Arc<Queue<Document>>);

impl Contender for Processes {
    type Handle = ();

    async fn install(told: &Settings) -> Result<(Self, Ready), Failure> {
        let (queue, ready) = Queue::install(told).await?;
        connect(&told.url).await?.batch_execute(PLAIN).await?;
        Ok((Self(Arc::new(queue)), ready))
    }

    async fn send(&self, _: usize, _: Vec<String>) -> Result<(), Failure> {
        Err("only the processes send".into())
    }

    async fn consume(self: Arc<Self>, tally: Arc<Tally>) -> Result<(), Failure> {
        self.0.clone().consume(tally).await
    }
}

/// The library, with one message per call.
pub struct Library(trunkline::Queue<Document>);

impl Contender for Library {
    type Handle = ();

    async fn install(told: &Settings) -> Result<(Self, Ready), Failure> {
        let queue = Db::connect(&told.url).await?.queue("bench").await?;
        Ok((Self(queue), described("Rust", "enqueue")))
    }

    async fn send(&self, _: usize, payloads: Vec<String>) -> Result<(), Failure> {
        for payload in payloads {
            self.0.enqueue(Document::of(payload)?).await?;
        }
        Ok(())
    }

    async fn consume(self: Arc<Self>, _: Arc<Tally>) -> Result<(), Failure> {
        Err("it only sends".into())
    }
}

/// Inserts into the plain table, and notifies if `NOTIFY` is set.
pub struct Plain<const NOTIFY: bool>(Client, Statement);

impl<const NOTIFY: bool> Contender for Plain<NOTIFY> {
    type Handle = ();

    async fn install(told: &Settings) -> Result<(Self, Ready), Failure> {
        let client = connect(&told.url).await?;
        let statement = client.prepare(if NOTIFY { INSERT_AND_NOTIFY } else { INSERT }).await?;
        let how = if NOTIFY { "insert and notify, prepared" } else { "insert, prepared" };
        Ok((Self(client, statement), described("tokio-postgres", how)))
    }

    async fn send(&self, _: usize, payloads: Vec<String>) -> Result<(), Failure> {
        for payload in payloads {
            self.0.execute(&self.1, &[&payload]).await?;
        }
        Ok(())
    }

    async fn consume(self: Arc<Self>, _: Arc<Tally>) -> Result<(), Failure> {
        Err("it only sends".into())
    }
}

fn described(version: &str, settings: &str) -> Ready {
    Ready { version: version.to_owned(), settings: settings.to_owned() }
}

async fn connect(url: &str) -> Result<Client, Failure> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}
