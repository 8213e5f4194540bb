//! The worker's report: a row every ten seconds, which the console shows.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use postgres_types::ToSql;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tracing::warn;

use crate::{
    error::Result,
    queue::message::payload::Payload,
    worker::{calls::Counted, report::Report, station::Station},
};

const EVERY: Duration = Duration::from_secs(10);
/// The timeout of the last report.
const LAST_WORDS: Duration = Duration::from_secs(5);

impl<T: Payload> Station<T> {
    /// Reports regularly until the future is dropped.
    pub async fn report(self: Arc<Self>) {
        let mut beats = interval(EVERY);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            beats.tick().await;
            // A separate task sends the report, so that dropping this future cannot interrupt it.
            // Otherwise a statement that was already sent could arrive after the final report.
            let station = self.clone();
            let _ = tokio::spawn(async move { station.tell(false).await }).await;
        }
    }

    /// Reports that the worker has shut down cleanly.
    pub async fn report_end(&self) {
        let _ = timeout(LAST_WORDS, self.tell(true)).await; // if it fails, the console notices that reports are missing
    }

    async fn tell(&self, ended: bool) {
        let Some(report) = &self.report else { return };
        let mut told = report.told.lock().await;
        if told.is_over {
            return; // the worker has shut down before the task of this report began
        }
        told.is_over = ended;
        let (counted, now) = (report.calls.counted(), Instant::now());
        let since = counted.since(&told.counted);
        match self.write(report, &since, now - told.at, ended).await {
            Ok(()) => (told.counted, told.at, told.failed) = (counted, now, false),
            Err(error) if !told.failed => {
                warn!(queue = self.name(), %error, "worker cannot report; it keeps working and will try again");
                told.failed = true;
            }
            Err(_) => {}
        }
    }

    async fn write(&self, report: &Report, since: &Counted, time: Duration, ended: bool) -> Result<()> {
        let shared = &self.queue.shared;
        let sql = shared.db.statement("report", include_str!("../../sql/statements/report.sql"));
        let running = if ended { 0 } else { self.held().hands() as i64 };
        let params: [&(dyn ToSql + Sync); 13] = [
            &report.worker,
            &self.name(),
            &i64::from(std::process::id()),
            &env!("CARGO_PKG_VERSION"),
            &report.began,
            &ended,
            &time.as_secs_f64(),
            &(since.handled as i64),
            &(since.failed as i64),
            &running,
            &(self.hands.most() as i64),
            &since.quantile(0.5),
            &since.quantile(0.99),
        ];
        shared.query(&sql, &params).await.map(drop)
    }
}
