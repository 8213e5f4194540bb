//! Runs workers whose handlers end messages in every way that a handler can.

use std::time::Duration;

use trunkline::{Attempt, Failure, Message, Queue, RetryPolicy, Worker};

use super::{
    ledger::enter,
    user::{User, got, tag_of},
};
use crate::{
    check::keys::DEAD,
    history::{Call, Said, Verb},
    plan::{self, LEASE},
    random::Random,
};

pub async fn run(user: User) -> Result<(), String> {
    let Some(db) = user.db().await else { return Ok(()) };
    let (Some(works), Some(exact), Some(keyed)) =
        (user.queue(&db, plan::WORKS).await, user.queue(&db, plan::EXACT).await, user.queue(&db, plan::KEYED).await)
    else {
        return Ok(());
    };
    tokio::join!(
        live(&user, works.clone(), 10),
        live(&user, exact, 2),
        live(&user, keyed, 6),
        live_in_batches(&user, works)
    );
    Ok(())
}

/// Runs a worker whose handler receives several messages per call, and returns one outcome per
/// message.
async fn live_in_batches(user: &User, queue: Queue<String>) {
    while !user.is_stopped() {
        let hand = user.clone();
        let handle = move |messages: Vec<Message<String>>| {
            let user = hand.clone();
            async move {
                let start = |message: &Message<String>| {
                    let tags = vec![tag_of(message)];
                    let call =
                        Call::new(Verb::Handle, plan::WORKS).named(vec![(message.id, message.attempt)]).tags(tags);
                    (user.invoked(call), message.id)
                };
                let begun: Vec<(u64, i64)> = messages.iter().map(start).collect();
                tokio::time::sleep(Duration::from_millis(20)).await;
                let answer = |(op, id): (u64, i64)| {
                    let fails = id % 13 == 0;
                    user.say(op, if fails { Said::Failed("to be tried again".to_owned()) } else { Said::ok() });
                    if fails { Err(Failure::retry("it failed")) } else { Ok(()) }
                };
                begun.into_iter().map(answer).collect()
            }
        };
        let worker = Worker::of_batches(queue.clone(), 8, handle)
            .concurrency(2)
            .lease(LEASE)
            .retry(RetryPolicy::fixed(Duration::from_millis(200)))
            .shutdown_after(Duration::from_secs(3));
        if let Err(error) = worker.run(user.stopped()).await {
            user.pause(&error).await;
        }
    }
}

/// Runs a worker, and restarts it after an error, as a supervisor would.
async fn live(user: &User, queue: Queue<String>, concurrency: usize) {
    while !user.is_stopped() {
        let hand = user.clone();
        let worker =
            Worker::with_attempt(queue.clone(), move |message, attempt| handle(hand.clone(), message, attempt))
                .concurrency(concurrency)
                .lease(LEASE)
                .retry(RetryPolicy::fixed(Duration::from_millis(200)))
                .shutdown_after(Duration::from_secs(3));
        if let Err(error) = worker.run(user.stopped()).await {
            user.pause(&error).await;
        }
    }
}

async fn handle(user: User, message: Message<String>, attempt: Attempt<String>) -> Result<(), Failure> {
    let queue = match &*attempt.queue().description().name {
        plan::EXACT => plan::EXACT,
        plan::KEYED => plan::KEYED,
        _ => plan::WORKS,
    };
    let (id, tag) = (message.id, tag_of(&message));
    let delivered = got(std::slice::from_ref(&message));
    let op = user.invoked(Call::new(Verb::Handle, queue).named(vec![(id, message.attempt)]).tags(vec![tag]));
    let mut random = Random::of(tag, message.attempt.unsigned_abs().into());
    // Makes some work last longer than a lease, so that the worker has to renew the lease. In the
    // queue with keys, such work also outlasts the hold on its partition, for which other workers
    // wait.
    let (often, more) = if queue == plan::KEYED { (2, random.within(500, 3_000)) } else { (1, 500) };
    let work = if random.chance(often) { LEASE.as_millis() as u64 + more } else { random.below(40) };
    tokio::time::sleep(Duration::from_millis(work)).await;
    if queue == plan::EXACT || random.chance(10) {
        return in_transaction(&user, message, &attempt, op, queue).await;
    }
    match random.below(100) {
        0..84 => {
            user.say(op, Said::got(delivered));
            Ok(())
        }
        84..93 => {
            user.say(op, Said::Failed("to be tried again".to_owned()));
            Err(Failure::retry("it failed"))
        }
        93..96 => {
            user.say(op, Said::Failed(DEAD.to_owned()));
            Err(Failure::dead(plan::BURIED))
        }
        96..98 => {
            let release = user.invoked(Call::new(Verb::Release, queue).named(vec![(id, message.attempt)]));
            user.end(release, attempt.release().await, |()| Said::ok());
            user.say(op, Said::got(delivered));
            Ok(())
        }
        _ => {
            user.say(op, Said::Failed("a panic".to_owned()));
            panic!("a handler panics")
        }
    }
}

/// Works in a transaction. The acknowledgement and the effect are committed together. If the lease
/// was lost, neither is committed.
async fn in_transaction(
    user: &User,
    message: Message<String>,
    attempt: &Attempt<String>,
    op: u64,
    queue: &str,
) -> Result<(), Failure> {
    let ack = user.invoked(Call::new(Verb::AckIn, queue).named(vec![(message.id, message.attempt)]));
    let delivered = got(std::slice::from_ref(&message));
    user.say(ack, Said::Took(delivered.clone()));
    let outcome = async {
        let transaction = attempt.transaction().await?;
        if queue == plan::EXACT {
            enter(&transaction, &[message], user.name(ack)).await?;
        }
        transaction.commit().await
    };
    let outcome: Result<(), trunkline::Error> = outcome.await;
    match &outcome {
        Ok(()) => user.say(ack, Said::ok()),
        Err(error) if error.is_outcome_unknown() => user.say(ack, Said::Unknown(error.to_string())),
        Err(error) => user.say(ack, Said::Failed(error.to_string())),
    }
    match &outcome {
        Ok(()) => user.say(op, Said::got(delivered)),
        Err(error) => user.say(op, Said::Failed(error.to_string())),
    }
    outcome.map_err(Failure::from)
}
