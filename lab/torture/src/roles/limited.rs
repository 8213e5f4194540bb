//! Uses queues with limits, which apply to all processes in total.

use std::time::Duration;

use trunkline::Queue;

use super::user::{User, got, named};
use crate::{
    history::{Call, Said, Verb},
    plan::{self, LEASE},
};

/// Leases, and waits before it acknowledges, so that the processes reach the limit.
pub async fn lease(user: User, queue: Queue<String>) {
    let mut random = user.random();
    while !user.is_stopped() {
        let n = random.within(1, 8) as usize;
        let op = user.invoked(Call::new(Verb::Lease, plan::CAPPED).n(n).ms(LEASE.as_millis() as u64));
        let leased = user.end(op, queue.lease(n).await, |messages| Said::got(got(messages))).unwrap_or_default();
        if !leased.is_empty() {
            user.rest(Duration::from_millis(random.within(20, 200))).await;
            user.end_leases(Verb::Ack, plan::CAPPED, named(&leased), 0, queue.ack(&leased)).await;
        }
        user.rest(Duration::from_millis(random.within(2, 30))).await;
    }
}

pub async fn take(user: User, queue: Queue<String>) {
    let mut random = user.random();
    while !user.is_stopped() {
        let n = random.within(1, 15) as usize;
        let op = user.invoked(Call::new(Verb::Take, plan::METERED).n(n));
        user.end(op, queue.take(n).await, |messages| Said::got(got(messages)));
        user.rest(Duration::from_millis(random.within(5, 60))).await;
    }
}
