//! The health check for process supervisors. It queries the database at most once a second for all
//! clients.

use std::time::{Duration, Instant};

use tokio::{sync::Mutex, time::timeout};
use trunkline::Db;

const EACH: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(3);

#[derive(Debug, Default)]
pub struct Health(Mutex<Option<(Instant, bool)>>);

impl Health {
    pub async fn is_well(&self, db: &Db) -> bool {
        let mut last = self.0.lock().await;
        if let Some((at, is_well)) = *last
            && at.elapsed() < EACH
        {
            return is_well;
        }
        let is_well = timeout(PATIENCE, db.list_queues()).await.is_ok_and(|queues| queues.is_ok());
        *last = Some((Instant::now(), is_well));
        is_well
    }
}
