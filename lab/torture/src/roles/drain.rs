//! Empties the queues after all other processes have ended.

use std::time::{Duration, Instant};

use trunkline::{Db, Failure, Limits, Message, Queue, Worker};

use super::{
    ledger::enter,
    user::{User, got, named, tag_of},
};
use crate::{
    history::{Call, Said, Verb},
    plan::{self, LEASE},
};

/// The time limit for emptying a queue. Within this time, leases, delays and several retries end.
const PATIENCE: Duration = Duration::from_secs(45);

pub async fn run(user: User) -> Result<(), String> {
    let Some(db) = user.db().await else { return Ok(()) };
    let until = Instant::now() + PATIENCE;
    for name in plan::QUEUES {
        // A process may have paused or limited the queue, and died before it undid that.
        let freed = async {
            db.resume_queue(name).await?;
            db.limit_queue(name, &Limits::none()).await
        };
        freed.await.map_err(|error| format!("queue {name} cannot be resumed: {error}"))?;
        let Some(queue) = user.queue(&db, name).await else { return Ok(()) };
        let outcome = match name {
            plan::ONCE | plan::FIFO | plan::BELL | plan::RANKED | plan::METERED => {
                take(&user, &queue, name, until).await
            }
            plan::EXACT => settle_in(&user, &db, &queue, until).await,
            plan::KEYED => work(&user, &queue, until).await,
            _ => lease(&user, &queue, name, until).await,
        };
        outcome.map_err(|error| format!("queue {name} cannot be drained: {error}"))?;
    }
    Ok(())
}

/// Returns true if the drain should probe the queue again.
async fn goes_on(queue: &Queue<String>, until: Instant) -> Result<bool, trunkline::Error> {
    // In the meantime, further messages may have become due.
    let left = queue.stats().await?.messages > 0 && Instant::now() < until;
    if left {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(left)
}

async fn take(user: &User, queue: &Queue<String>, name: &str, until: Instant) -> Result<(), trunkline::Error> {
    loop {
        let op = user.invoked(Call::new(Verb::Take, name).n(500));
        let taken = queue.take(500).await;
        let some = user.end(op, taken, |messages| Said::got(got(messages))).is_some_and(|taken| !taken.is_empty());
        if !some && !goes_on(queue, until).await? {
            return Ok(());
        }
    }
}

async fn lease(user: &User, queue: &Queue<String>, name: &str, until: Instant) -> Result<(), trunkline::Error> {
    loop {
        let op = user.invoked(Call::new(Verb::Lease, name).n(500).ms(LEASE.as_millis() as u64));
        let leased = user.end(op, queue.lease(500).await, |messages| Said::got(got(messages))).unwrap_or_default();
        user.end_leases(Verb::Ack, name, named(&leased), 0, queue.ack(&leased)).await;
        if leased.is_empty() && !goes_on(queue, until).await? {
            return Ok(());
        }
    }
}

/// Works through partitions. A dead process may still hold a partition for a while.
async fn work(user: &User, queue: &Queue<String>, until: Instant) -> Result<(), trunkline::Error> {
    loop {
        let hand = user.clone();
        let handle = move |message: Message<String>| {
            let lease = vec![(message.id, message.attempt)];
            let op = hand.invoked(Call::new(Verb::Handle, plan::KEYED).named(lease).tags(vec![tag_of(&message)]));
            hand.say(op, Said::ok());
            async { Ok::<(), Failure>(()) }
        };
        Worker::new(queue.clone(), handle).lease(LEASE).drain().await?;
        if !goes_on(queue, until).await? {
            return Ok(());
        }
    }
}

async fn settle_in(user: &User, db: &Db, queue: &Queue<String>, until: Instant) -> Result<(), trunkline::Error> {
    loop {
        let op = user.invoked(Call::new(Verb::TakeIn, plan::EXACT).n(500));
        let outcome = async {
            let transaction = db.begin().await?;
            let messages = queue.take_in(&transaction, 500).await?;
            user.say(op, Said::Took(got(&messages)));
            if !messages.is_empty() {
                enter(&transaction, &messages, user.name(op)).await?;
            }
            transaction.commit().await.map(|()| !messages.is_empty())
        };
        let some = user.end(op, outcome.await, |_| Said::ok()).unwrap_or_default();
        if !some && !goes_on(queue, until).await? {
            return Ok(());
        }
    }
}
