//! Probes each server fifty times a second, to find out which server accepts writes, and since
//! when.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_postgres::NoTls;

const LOOK: Duration = Duration::from_millis(20);
const LIMIT: Duration = Duration::from_secs(1);
const STATE: &str = "select pg_is_in_recovery(), pg_postmaster_start_time()::text";

#[derive(Debug, Clone, Copy)]
pub struct Promotion {
    pub node: usize,
    pub at: Instant,
}

pub struct Watch {
    promotions: Arc<Mutex<Vec<Promotion>>>,
    /// The probing tasks, which end when the value is dropped.
    _looks: JoinSet<()>,
}

impl Watch {
    pub fn start(urls: Vec<String>) -> Self {
        let promotions = Arc::<Mutex<Vec<Promotion>>>::default();
        let mut looks = JoinSet::new();
        for (node, url) in urls.into_iter().enumerate() {
            looks.spawn(look(node, url, promotions.clone()));
        }
        Self { promotions, _looks: looks }
    }

    /// Waits for a promotion after `since`.
    pub async fn after(&self, since: Instant, patience: Duration) -> Option<Promotion> {
        let found = async {
            loop {
                let all = self.promotions.lock().unwrap_or_else(PoisonError::into_inner).clone();
                if let Some(found) = all.into_iter().find(|promotion| promotion.at > since) {
                    return found;
                }
                sleep(LOOK).await;
            }
        };
        timeout(patience, found).await.ok()
    }
}

async fn look(node: usize, url: String, promotions: Arc<Mutex<Vec<Promotion>>>) {
    // A stopped server keeps its role. A server counts as promoted only if it was not the primary
    // before, or was restarted.
    let mut known: Option<(bool, String)> = None;
    loop {
        if let Ok(Ok((client, connection))) = timeout(LIMIT, tokio_postgres::connect(&url, NoTls)).await {
            let driver = tokio::spawn(connection);
            while let Ok(Ok(row)) = timeout(LIMIT, client.query_one(STATE, &[])).await {
                let now: (bool, String) = (row.get(0), row.get(1));
                if !now.0 && known.as_ref() != Some(&now) {
                    let promotion = Promotion { node, at: Instant::now() };
                    promotions.lock().unwrap_or_else(PoisonError::into_inner).push(promotion);
                }
                known = Some(now);
                sleep(LOOK).await;
            }
            driver.abort();
        }
        sleep(LOOK).await;
    }
}
