//! Stores the doctor's latest findings. One examination runs at a time, and pages wait for it only
//! briefly.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use tokio::{sync::watch, time::timeout};
use trunkline::Db;

use crate::{
    doctor::{Doctor, Finding},
    reason::reason,
    web::shared::is_fresh,
};

/// The minimum age of findings before another examination.
const FRESH: Duration = Duration::from_secs(20);
/// The maximum time that a page waits for an examination.
const WAIT: Duration = Duration::from_secs(2);

/// The outcome of one examination.
#[derive(Debug)]
pub struct Looked {
    pub at: SystemTime,
    pub took: Duration,
    pub findings: Result<Vec<Finding>, String>,
    ended: Instant,
}

#[derive(Debug, Clone, Default)]
pub struct State {
    pub last: Option<Arc<Looked>>,
    /// The start of the examination in progress.
    pub since: Option<Instant>,
}

#[derive(Debug)]
pub struct Checkup {
    doctor: Doctor,
    state: watch::Sender<State>,
}

impl Checkup {
    pub fn new(doctor: Doctor) -> Self {
        Self { doctor, state: watch::Sender::new(State::default()) }
    }

    /// Returns the latest findings, and whether an examination is in progress. Starts an
    /// examination if the findings are old.
    pub async fn state(self: &Arc<Self>, db: &Db) -> State {
        let mut seen = self.state.subscribe();
        let begins = self.state.send_if_modified(|state| {
            let is_fresh = |last: &Arc<Looked>| is_fresh(last.ended.elapsed(), last.took, FRESH, last.findings.is_ok());
            let begins = state.since.is_none() && !state.last.as_ref().is_some_and(is_fresh);
            state.since = if begins { Some(Instant::now()) } else { state.since };
            begins
        });
        if begins {
            tokio::spawn(look(Arc::clone(self), db.clone()));
        }
        let _ = timeout(WAIT, seen.wait_for(|state| state.since.is_none())).await;
        seen.borrow().clone()
    }
}

async fn look(of: Arc<Checkup>, db: Db) {
    // Dropping this value lets the next page start another examination. It is also dropped if this
    // task panics or the runtime ends.
    let ends = Ends(of);
    let (at, begun) = (SystemTime::now(), Instant::now());
    let findings = ends.0.doctor.examine(&db).await.map_err(|error| reason(&error));
    let looked = Looked { at, took: begun.elapsed(), findings, ended: Instant::now() };
    ends.0.state.send_modify(|state| state.last = Some(Arc::new(looked)));
}

struct Ends(Arc<Checkup>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.state.send_modify(|state| state.since = None);
    }
}
