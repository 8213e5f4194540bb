//! Consumers that are the only consumers of their queues. Two of them check the order, with and
//! without priorities. The third only listens, and detects late messages.

use std::time::Duration;

use trunkline::{Consumer, Queue, Wait};

use super::user::{User, got, named};
use crate::{
    history::{Call, Said, Verb},
    plan::{self, LEASE},
};

pub async fn run(user: User) -> Result<(), String> {
    let Some(db) = user.db().await else { return Ok(()) };
    let (Some(fifo), Some(ranked), Some(bell)) =
        (user.queue(&db, plan::FIFO).await, user.queue(&db, plan::RANKED).await, user.queue(&db, plan::BELL).await)
    else {
        return Ok(());
    };
    let consumer = bell.consumer(Wait::Notify);
    let tasks = [
        tokio::spawn(in_order(user.clone(), fifo, plan::FIFO)),
        tokio::spawn(in_order(user.clone(), ranked, plan::RANKED)),
        tokio::spawn(listen(user, consumer)),
    ];
    for task in tasks {
        task.await.map_err(|error| format!("a task ended: {error}"))?;
    }
    Ok(())
}

/// Polls continuously, so that it detects a hidden message.
async fn in_order(user: User, queue: Queue<String>, name: &'static str) {
    let mut random = user.random();
    while !user.is_stopped() {
        if name == plan::RANKED && random.chance(2) {
            // Lets a backlog grow, so that priorities have an effect.
            user.rest(Duration::from_millis(random.within(500, 3_000))).await;
        }
        let n = random.within(1, 60) as usize;
        if random.chance(50) {
            let op = user.invoked(Call::new(Verb::Take, name).n(n));
            user.end(op, queue.take(n).await, |messages| Said::got(got(messages)));
        } else {
            let op = user.invoked(Call::new(Verb::Lease, name).n(n).ms(LEASE.as_millis() as u64));
            let leased = user.end(op, queue.lease(n).await, |messages| Said::got(got(messages))).unwrap_or_default();
            user.end_leases(Verb::Ack, name, named(&leased), 0, queue.ack(&leased)).await;
        }
        user.rest(Duration::from_millis(random.within(10, 30))).await;
    }
}

async fn listen(user: User, mut consumer: Consumer<String>) {
    while !user.is_stopped() {
        let op = user.invoked(Call::new(Verb::TakeWaiting, plan::BELL).n(10));
        tokio::select! {
            outcome = consumer.take(10) => drop(user.end(op, outcome, |messages| Said::got(got(messages)))),
            () = user.stopped() => user.say(op, Said::Dropped),
        }
    }
}
