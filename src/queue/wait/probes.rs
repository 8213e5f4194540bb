//! Probes that the consumers of a queue share. A notification wakes all waiting consumers at the
//! same time, and each of them would send a probe.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::{
    sync::Mutex,
    time::{Duration, timeout},
};

use crate::error::Result;

/// The time after which a caller no longer waits for another caller's probe, which may belong to a
/// future that its task does not poll.
const TURN: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(crate) struct Probes {
    begun: AtomicU64,
    /// The number of the last shared probe, and its outcome. Locked while a probe runs.
    last: Mutex<Option<(u64, Result<Option<f64>>)>>,
}

impl Probes {
    /// Runs `look`. If another caller's probe begins during this call, returns its outcome instead.
    pub async fn share(&self, look: impl Future<Output = Result<Option<f64>>>) -> Result<Option<f64>> {
        let before = self.begun.load(Ordering::SeqCst);
        let mut last = timeout(TURN, self.last.lock()).await.ok();
        if let Some((number, outcome)) = last.as_deref().and_then(Option::as_ref)
            && *number > before
        {
            return outcome.clone();
        }
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let outcome = look.await;
        if let Some(last) = &mut last {
            **last = Some((number, outcome.clone()));
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, pin::pin};

    use futures_util::FutureExt;
    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn callers_share_a_probe_that_begins_after_their_calls() {
        let (probes, answer, sent) = (Probes::default(), Notify::new(), Cell::new(0));
        let look = || async {
            sent.set(sent.get() + 1);
            answer.notified().await;
            Ok(Some(f64::from(sent.get())))
        };
        let mut first = pin!(probes.share(look()));
        assert!((&mut first).now_or_never().is_none());
        let mut second = pin!(probes.share(look()));
        let mut third = pin!(probes.share(look()));
        assert!((&mut second).now_or_never().is_none());
        assert!((&mut third).now_or_never().is_none());
        assert_eq!(sent.get(), 1, "the first one began before the other calls");
        answer.notify_one();
        assert_eq!(first.await.expect("answered"), Some(1.0));
        assert!((&mut second).now_or_never().is_none());
        answer.notify_one();
        assert_eq!(second.await.expect("answered"), Some(2.0));
        assert_eq!(third.await.expect("answered"), Some(2.0));
        assert_eq!(sent.get(), 2, "the last two calls share one");
    }

    #[tokio::test(start_paused = true)]
    async fn caller_that_is_not_polled_holds_up_no_other() {
        let (probes, answer) = (Probes::default(), Notify::new());
        let mut first = pin!(probes.share(async {
            answer.notified().await;
            Ok(None)
        }));
        assert!((&mut first).now_or_never().is_none());
        let second = timeout(2 * TURN, probes.share(async { Ok(Some(2.0)) })).await;
        assert_eq!(second.expect("in time").expect("answered"), Some(2.0));
    }
}
