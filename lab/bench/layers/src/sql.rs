use std::{sync::Arc, time::Duration};

use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls, Statement, types::ToSql};
use trunkline_contender::{Contender, Failure, Ready, Settings, Tally};

use crate::{open::open, payload::Document};

const ENQUEUE: &str = "select trunkline.enqueue('bench', $1::text)";
const ENQUEUE_MANY: &str = "select trunkline.enqueue_many('bench', $1::text[])";
const LEASE: &str = "select id, attempt, payload from trunkline.lease('bench', $1)";
const TAKE: &str = "select id, payload from trunkline.take('bench', $1)";
const ACK: &str = "select trunkline.ack('bench', $1, $2)";
const ACK_MANY: &str = "select trunkline.ack_many('bench', $1, $2)";
const ARCHIVE: &str = "select trunkline.archive('bench', $1, $2)";
const RECORD: &str = "with taken as (select id, payload from trunkline.take('bench', $1))
    insert into ledger select id, payload::jsonb from taken returning body::text";
const ARCHIVE_MANY: &str = "select trunkline.archive_many('bench', $1, $2)";

/// The number of sessions, which the callers share.
const SESSIONS: usize = 16;

/// The SQL functions, called through tokio-postgres as any other language would call them.
pub struct Sql {
    sessions: Vec<Session>,
    told: Settings,
}

struct Session {
    client: Client,
    enqueue: Statement,
    enqueue_many: Statement,
    lease: Statement,
    take: Statement,
    ack: Statement,
    ack_many: Statement,
    archive: Statement,
    archive_many: Statement,
}

impl Session {
    async fn open(url: &str) -> Result<Self, Failure> {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        tokio::spawn(connection);
        Ok(Self {
            enqueue: client.prepare(ENQUEUE).await?,
            enqueue_many: client.prepare(ENQUEUE_MANY).await?,
            lease: client.prepare(LEASE).await?,
            take: client.prepare(TAKE).await?,
            ack: client.prepare(ACK).await?,
            ack_many: client.prepare(ACK_MANY).await?,
            archive: client.prepare(ARCHIVE).await?,
            archive_many: client.prepare(ARCHIVE_MANY).await?,
            client,
        })
    }

    async fn lease(&self, n: usize) -> Result<Vec<(i64, i32, String)>, Failure> {
        let rows = self.client.query(&self.lease, &[&(n as i32)]).await?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect())
    }

    /// Runs the statement for one message or the statement for many.
    async fn settle(&self, one: &Statement, many: &Statement, read: Vec<(i64, i32)>) -> Result<(), Failure> {
        if let [(id, attempt)] = read[..] {
            self.client.execute(one, &[&id, &attempt]).await?;
            return Ok(());
        }
        let (ids, attempts): (Vec<i64>, Vec<i32>) = read.into_iter().unzip();
        let parameters: [&(dyn ToSql + Sync); 2] = [&ids, &attempts];
        self.client.execute(many, &parameters).await?;
        Ok(())
    }
}

impl Sql {
    fn session(&self, caller: usize) -> &Session {
        &self.sessions[caller % self.sessions.len()]
    }
}

impl Contender for Sql {
    type Handle = (i64, i32);

    async fn install(told: &Settings) -> Result<(Self, Ready), Failure> {
        let (_, mut ready) = open::<Document>(told, "").await?;
        "the functions of schema trunkline through tokio-postgres".clone_into(&mut ready.settings);
        let mut sessions = Vec::new();
        for _ in 0..told.producers.max(told.consumers).min(SESSIONS) {
            sessions.push(Session::open(&told.url).await?);
        }
        Ok((Self { sessions, told: told.clone() }, ready))
    }

    async fn send(&self, caller: usize, payloads: Vec<String>) -> Result<(), Failure> {
        let session = self.session(caller);
        match &payloads[..] {
            [payload] => session.client.execute(&session.enqueue, &[payload]).await?,
            _ => session.client.execute(&session.enqueue_many, &[&payloads]).await?,
        };
        Ok(())
    }

    async fn consume(self: Arc<Self>, tally: Arc<Tally>) -> Result<(), Failure> {
        let mut consumers = JoinSet::new();
        for consumer in 0..self.told.consumers_or(1) {
            let (sql, tally) = (self.clone(), tally.clone());
            let n = if sql.told.consumers == 0 { 1000 } else { sql.told.fetched() };
            consumers.spawn(async move {
                let session = sql.session(consumer);
                while !tally.is_over() {
                    let read = session.lease(n).await?;
                    if read.is_empty() {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                        continue;
                    }
                    tally.received_many(read.iter().map(|(_, _, payload)| payload));
                    let read = read.iter().map(|read| (read.0, read.1)).collect();
                    session.settle(&session.ack, &session.ack_many, read).await?;
                }
                Ok::<_, Failure>(())
            });
        }
        while let Some(ended) = consumers.join_next().await {
            ended??;
        }
        Ok(())
    }

    /// Takes and writes in one statement, which is one transaction.
    async fn record(self: Arc<Self>, tally: Arc<Tally>) -> Result<(), Failure> {
        let mut consumers = JoinSet::new();
        for consumer in 0..self.told.consumers_or(1) {
            let (sql, tally) = (self.clone(), tally.clone());
            consumers.spawn(async move {
                let session = sql.session(consumer);
                let record = session.client.prepare(RECORD).await?;
                while !tally.is_over() {
                    let rows = session.client.query(&record, &[&(sql.told.fetched() as i32)]).await?;
                    tally.received_many(rows.iter().map(|row| row.get::<_, &str>(0)));
                }
                Ok::<_, Failure>(())
            });
        }
        while let Some(ended) = consumers.join_next().await {
            ended??;
        }
        Ok(())
    }

    async fn read(&self, caller: usize, n: usize) -> Result<Vec<(i64, i32)>, Failure> {
        Ok(self.session(caller).lease(n).await?.into_iter().map(|(id, attempt, _)| (id, attempt)).collect())
    }

    async fn delete(&self, caller: usize, read: Vec<(i64, i32)>) -> Result<(), Failure> {
        let session = self.session(caller);
        session.settle(&session.ack, &session.ack_many, read).await
    }

    async fn archive(&self, caller: usize, read: Vec<(i64, i32)>) -> Result<(), Failure> {
        let session = self.session(caller);
        session.settle(&session.archive, &session.archive_many, read).await
    }

    async fn pop(&self, caller: usize, n: usize) -> Result<usize, Failure> {
        let session = self.session(caller);
        Ok(session.client.query(&session.take, &[&(n as i32)]).await?.len())
    }
}
