//! At most once: takes messages, and drops some calls before they return.

use std::time::Duration;

use futures_util::future::join_all;
use trunkline::{Consumer, Dequeue, Queue, Wait};

use super::user::{User, got};
use crate::{
    history::{Call, Said, Verb},
    plan,
    random::Random,
};

pub async fn run(user: User) -> Result<(), String> {
    let Some(db) = user.db().await else { return Ok(()) };
    let mut tasks = tokio::task::JoinSet::new();
    for nr in 0..4 {
        let name = if nr == 3 { plan::PURGED } else { plan::ONCE };
        let Some(queue) = user.queue(&db, name).await else { return Ok(()) };
        let wait = [Wait::Adaptive, Wait::Notify, Wait::poll()][nr % 3];
        tasks.spawn(take(user.clone(), queue.consumer(wait), name, user.random()));
    }
    let Some(queue) = user.queue(&db, plan::ONCE).await else { return Ok(()) };
    tasks.spawn(hear(user, queue.consumer(Wait::Notify)));
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|error| format!("a task ended: {error}"))?;
    }
    Ok(())
}

async fn take(user: User, mut consumer: Consumer<String>, name: &'static str, mut random: Random) {
    while !user.is_stopped() {
        let n = random.within(1, 30) as usize;
        if random.chance(20) {
            // Makes concurrent calls, which share a statement. Each call receives a part of its
            // rows.
            let queue = consumer.queue().clone();
            let calls: Vec<_> = (0..random.within(2, 8)).map(|nr| (nr + n as u64) as usize).collect();
            join_all(calls.into_iter().map(|n| take_now(&user, &queue, name, n))).await;
            continue;
        }
        let op = user.invoked(Call::new(Verb::TakeWaiting, name).n(n));
        if random.chance(15) {
            let patience = Duration::from_micros(random.below(3000));
            match tokio::time::timeout(patience, consumer.take(n)).await {
                Ok(outcome) => drop(user.end(op, outcome, |messages| Said::got(got(messages)))),
                Err(_) => user.say(op, Said::Dropped),
            }
        } else {
            let outcome = consumer.take(Dequeue::up_to(n).within(Duration::from_millis(300))).await;
            user.end(op, outcome, |messages| Said::got(got(messages)));
        }
        user.rest(Duration::from_millis(random.within(5, 80))).await;
    }
}

async fn take_now(user: &User, queue: &Queue<String>, name: &str, n: usize) {
    let op = user.invoked(Call::new(Verb::Take, name).n(n));
    user.end(op, queue.take(n).await, |messages| Said::got(got(messages)));
}

/// Waits for messages that are delivered directly.
async fn hear(user: User, mut consumer: Consumer<String>) {
    while !user.is_stopped() {
        let op = user.invoked(Call::new(Verb::HandedOver, plan::ONCE).n(1));
        tokio::select! {
            outcome = consumer.receive_direct() => {
                user.end(op, outcome, |message| Said::got(got(std::slice::from_ref(message))));
            }
            () = user.stopped() => user.say(op, Said::Dropped),
        }
        user.rest(Duration::from_millis(50)).await;
    }
}
