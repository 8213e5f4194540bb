//! Each message of a queue arrives at least once and in the order of its key, even if a process is
//! killed while it works.

use std::{sync::Arc, time::Duration};

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use trunkline_embedded::Stop;
use trunkline_relay::{Progress, Relay};

use crate::{
    brokers::Kind,
    ends::Sent,
    stand::{Stand, until},
};

const KEYS: usize = 50;
const EACH: usize = 40;

/// A relay that runs in a task.
struct Running {
    task: JoinHandle<trunkline_relay::Result<Arc<Progress>>>,
    progress: Arc<Progress>,
    stop: CancellationToken,
}

impl Running {
    async fn of(stand: &Stand) -> Self {
        Self::with_lease(stand, Duration::from_secs(3)).await
    }

    async fn with_lease(stand: &Stand, lease: Duration) -> Self {
        let (sink, route) = stand.sink().await;
        let relay = Relay::new(stand.queue.clone(), sink).route(route).lease(lease);
        let (progress, stop) = (relay.progress(), CancellationToken::new());
        let task = tokio::spawn(relay.run(stop.clone().cancelled_owned()));
        Self { task, progress, stop }
    }

    async fn confirmed(&self, messages: u64) {
        until("messages are confirmed", async || self.progress.confirmed() >= messages).await;
    }

    async fn end(self) {
        self.stop.cancel();
        self.task.await.expect("no panic").expect("a clean end");
    }

    /// Stops the task as a crash would: no message is settled or released.
    fn kill(self) {
        self.task.abort();
    }
}

async fn out_through(kind: Kind, trouble: impl AsyncFnOnce(&mut Stand, &mut Sent, &Progress)) {
    let mut stand = Stand::of(kind, 16).await;
    let mut sent = Sent::default();
    stand.enqueue(&mut sent, KEYS, EACH).await;
    let relay = Running::of(&stand).await;
    relay.confirmed(200).await;
    trouble(&mut stand, &mut sent, &relay.progress).await;
    stand.enqueue(&mut sent, KEYS, 5).await;
    stand.drained().await;
    relay.end().await;
    sent.against(&stand.arrived().await).at_least_once();
    let stats = stand.queue.stats().await.expect("counted");
    assert_eq!(stats.dead, 0, "an outage makes no dead letters");
}

/// Waits until the relay notices that the broker is unavailable. Enqueues messages, because the
/// relay may already have carried all earlier ones.
async fn noticed(stand: &Stand, sent: &mut Sent, progress: &Progress) {
    let before = progress.again();
    stand.enqueue(sent, KEYS, 1).await;
    until("a batch was refused for now", async || progress.again() > before).await;
}

async fn broker_killed(stand: &mut Stand, sent: &mut Sent, progress: &Progress) {
    stand.broker.kill();
    noticed(stand, sent, progress).await;
    stand.broker.start_again();
}

async fn broker_stopped(stand: &mut Stand, sent: &mut Sent, progress: &Progress) {
    stand.broker.stop();
    noticed(stand, sent, progress).await;
    stand.broker.go_on();
}

async fn network_cut(stand: &mut Stand, _: &mut Sent, _: &Progress) {
    for _ in 0..3 {
        stand.proxy.cut_answers_after(Some(50));
        let proxy = stand.proxy.clone();
        until("an answer is cut", async || {
            !proxy.is_cut_ahead() || stand.queue.stats().await.is_ok_and(|stats| stats.messages == 0)
        })
        .await;
        stand.proxy.cut_requests_after(Some(700));
        until("a request is cut", async || {
            !proxy.is_cut_ahead() || stand.queue.stats().await.is_ok_and(|stats| stats.messages == 0)
        })
        .await;
    }
    stand.proxy.cut_answers_after(None);
    stand.proxy.cut_requests_after(None);
}

async fn postgres_killed(stand: &mut Stand, _: &mut Sent, _: &Progress) {
    stand.cluster.restart(Stop::Immediate).expect("it starts again");
}

async fn relay_killed(kind: Kind) {
    let stand = Stand::of(kind, 16).await;
    let mut sent = Sent::default();
    stand.enqueue(&mut sent, KEYS, EACH).await;
    for _ in 0..3 {
        // The next relay waits until these leases end.
        let relay = Running::with_lease(&stand, Duration::from_secs(1)).await;
        relay.confirmed(100).await;
        relay.kill();
    }
    let (one, other) = (Running::of(&stand).await, Running::of(&stand).await);
    stand.enqueue(&mut sent, KEYS, 5).await;
    stand.drained().await;
    one.end().await;
    other.end().await;
    sent.against(&stand.arrived().await).at_least_once();
}

macro_rules! of_each {
    ($($kind:ident $feature:literal $which:expr, $needs:literal;)*) => { $(
        #[cfg(feature = $feature)]
        mod $kind {
            use super::*;

            #[tokio::test(flavor = "multi_thread")]
            #[ignore = $needs]
            async fn nothing_is_lost_where_the_broker_is_killed() {
                out_through($which, broker_killed).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            #[ignore = $needs]
            async fn nothing_is_lost_where_the_broker_stands_still() {
                out_through($which, broker_stopped).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            #[ignore = $needs]
            async fn nothing_is_lost_where_the_network_is_cut() {
                out_through($which, network_cut).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            #[ignore = $needs]
            async fn nothing_is_lost_where_postgres_is_killed() {
                out_through($which, postgres_killed).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            #[ignore = $needs]
            async fn nothing_is_lost_where_relays_are_killed() {
                relay_killed($which).await;
            }
        }
    )* };
}

of_each! {
    nats "nats" Kind::Nats, "needs NATS: see .ci/brokers";
    redis "redis" Kind::Redis, "needs Redis: see .ci/brokers";
}
