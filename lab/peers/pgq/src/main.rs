//! Runs PgQ 3, which is an extension of the server and a separate process that ticks.

mod session;
mod ticker;

use std::{
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use trunkline_contender::{Contender, Failure, Missing, NO_MEASURE, Ready, Settings, Tally};

use crate::{session::Session, ticker::Ticker};

fn main() -> ExitCode {
    trunkline_contender::run::<Pgq>(NO_MEASURE)
}

struct Pgq {
    producers: Vec<Session>,
    /// The only consumer, regardless of the settings. Each of two consumers would receive every
    /// message.
    consumer: Session,
    turn: AtomicUsize,
    ticker: Ticker,
}

impl Contender for Pgq {
    type Handle = ();

    async fn install(settings: &Settings) -> Result<(Self, Ready), Failure> {
        let admin = session::connect(&settings.url).await?;
        let available = "select default_version from pg_available_extensions where name = 'pgq'";
        let Some(row) = admin.query_opt(available, &[]).await? else {
            return Err(Missing(
                "the extension pgq is not installed on this server (Debian: postgresql-15-pgq3)".into(),
            )
            .into());
        };
        let version: String = row.try_get(0)?;
        admin.batch_execute(session::SCHEMA).await?;
        let ticker = Ticker::start(&settings.url, &admin).await?;
        let mut producers = Vec::with_capacity(settings.producers);
        for _ in 0..settings.producers {
            producers.push(Session::connect(&settings.url).await?);
        }
        let consumer = Session::connect(&settings.url).await?;
        let ready = Ready {
            version: format!("PgQ {version}, tokio-postgres 0.7"),
            settings: format!("1 consumer, {ticker}, ticker_max_lag 0, next_batch every 10 ms when there is none"),
        };
        Ok((Self { producers, consumer, turn: AtomicUsize::new(0), ticker }, ready))
    }

    async fn send(&self, caller: usize, payloads: Vec<String>) -> Result<(), Failure> {
        self.producers[caller].insert(payloads).await
    }

    async fn seed(&self, payloads: Vec<String>) -> Result<(), Failure> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        self.send(turn % self.producers.len(), payloads).await
    }

    async fn consume(self: Arc<Self>, tally: Arc<Tally>) -> Result<(), Failure> {
        self.consumer.consume(&self.ticker, &tally).await
    }
}
