//! At least once, with less common calls: messages as a stream, and leases in a transaction of the
//! caller.

use std::{pin::pin, time::Duration};

use futures_util::StreamExt;
use trunkline::{Db, Queue, Wait};

use super::user::{User, got, named};
use crate::{
    history::{Call, Said, Verb},
    plan::{self, LEASE},
};

/// Reads streams. A stream leases in advance, so the start of a lease is unknown here. Each stream
/// is dropped after a while, together with the messages that it holds.
pub async fn stream(user: User, queue: Queue<String>) {
    let mut random = user.random();
    while !user.is_stopped() {
        let mut stream = pin!(queue.consumer(Wait::Adaptive).messages(random.within(1, 30) as usize));
        for _ in 0..random.within(1, 60) {
            let op = user.invoked(Call::new(Verb::Lease, plan::LEAST).n(1));
            let message = tokio::select! {
                message = stream.next() => message,
                () = user.rest(Duration::from_millis(500)) => {
                    user.say(op, Said::Dropped);
                    break;
                }
            };
            let Some(message) = message else { break };
            let Some(message) = user.end(op, message, |one| Said::got(got(std::slice::from_ref(one)))) else {
                continue;
            };
            let (message, leases) = ([message.clone()], named(&[message]));
            match random.below(100) {
                0..85 => user.end_leases(Verb::Ack, plan::LEAST, leases, 0, queue.ack(&message)).await,
                85..95 => user.end_leases(Verb::Release, plan::LEAST, leases, 0, queue.release(&message)).await,
                _ => {} // the lease expires by itself
            }
            user.rest(Duration::from_millis(random.below(10))).await;
        }
    }
}

/// Leases in transactions. A lease that is rolled back never existed.
pub async fn lease_in_transactions(user: User, db: Db, queue: Queue<String>) {
    let mut random = user.random();
    while !user.is_stopped() {
        user.rest(Duration::from_millis(random.within(50, 400))).await;
        let (n, rolls_back) = (random.within(1, 8) as usize, random.chance(30));
        let op = user.invoked(Call::new(Verb::Lease, plan::LEAST).n(n).ms(LEASE.as_millis() as u64));
        let outcome = async {
            let transaction = db.begin().await?;
            let messages = queue.send_lease(&transaction, n).await?.await?;
            user.say(op, Said::Took(got(&messages)));
            if rolls_back {
                transaction.rollback().await?;
                return Ok(None);
            }
            transaction.commit().await.map(|()| Some(messages))
        };
        let said = |messages: &Option<Vec<_>>| match messages {
            Some(_) => Said::ok(),
            None => Said::Failed("rolled back".to_owned()),
        };
        let messages = user.end(op, outcome.await, said).flatten().unwrap_or_default();
        user.end_leases(Verb::Ack, plan::LEAST, named(&messages), 0, queue.ack(&messages)).await;
    }
}
