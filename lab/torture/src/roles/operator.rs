//! Operates queues from Rust: dead letters, the archive, messages by id, and changes in
//! transactions.

use std::time::{Duration, SystemTime};

use trunkline::{Db, Error, Limits, Queue};

use super::user::User;
use crate::{
    history::{Call, Said, Verb},
    plan,
    random::Random,
};

pub async fn operate(user: User, db: Db) {
    let mut random = user.random();
    while !user.is_stopped() {
        user.rest(Duration::from_millis(random.within(100, 800))).await;
        let name = *random.among(&[plan::LEAST, plan::WORKS, plan::ONCE, plan::EXACT]);
        let Some(queue) = user.queue(&db, name).await else { return };
        match random.below(7) {
            // In this queue a message may end only together with an entry in the ledger. So its
            // messages are not replayed or cancelled here. The queue is paused more often than the
            // others, because only its consumers take in transactions.
            0 | 1 | 6 if name == plan::EXACT => {}
            2..=4 if name == plan::EXACT => pause(&user, &db, name, &mut random).await,
            0 => letters(&user, &queue, name, &mut random).await,
            1 => drop(record(&user, Verb::Archived, name, queue.archived(0, 50)).await),
            2 => drop(record(&user, Verb::Stats, name, queue.stats()).await),
            3 => find(&user, &queue, name).await,
            4 => pause(&user, &db, name, &mut random).await,
            5 => limit(&user, &db, name, &mut random).await,
            _ => change_in(&user, &db, &queue, name, &mut random).await,
        }
    }
}

/// Pauses a queue for a while. If the process dies during that time, the queue stays paused until a
/// later call resumes it.
async fn pause(user: &User, db: &Db, name: &str, random: &mut Random) {
    let op = user.invoked(Call::new(Verb::Pause, name));
    user.end(op, db.pause_queue(name).await, |()| Said::ok());
    user.rest(Duration::from_millis(random.below(600))).await;
    let op = user.invoked(Call::new(Verb::Resume, name));
    user.end(op, db.resume_queue(name).await, |()| Said::ok());
}

async fn limit(user: &User, db: &Db, name: &str, random: &mut Random) {
    let limits = match random.below(3) {
        0 => Limits::none().max_leased(random.within(5, 50) as u32),
        1 => Limits::none().per_second(random.within(50, 500) as f64).burst(random.within(1, 50) as u32),
        _ => Limits::none(),
    };
    record(user, Verb::Limit, name, db.limit_queue(name, &limits)).await;
    user.rest(Duration::from_millis(random.below(1_500))).await;
    record(user, Verb::Limit, name, db.limit_queue(name, &Limits::none())).await;
}

async fn record<T>(user: &User, verb: Verb, name: &str, call: impl Future<Output = Result<T, Error>>) -> Option<T> {
    let op = user.invoked(Call::new(verb, name));
    user.end(op, call.await, |_| Said::ok())
}

/// Returns the outcome of a call that names ids. If the call failed, some of the messages may have
/// been changed.
fn said<T>(outcome: Result<T, Error>, ids: impl FnOnce(T) -> Vec<i64>) -> Said {
    outcome.map_or_else(|error| Said::Unknown(error.to_string()), |value| Said::ids(ids(value)))
}

async fn letters(user: &User, queue: &Queue<String>, name: &str, random: &mut Random) {
    let page = queue.dead_letters(random.below(5_000_000) as i64, 20);
    let Some(letters) = record(user, Verb::DeadLetters, name, page).await else { return };
    let ids: Vec<i64> = letters.iter().map(|letter| letter.id).filter(|_| random.chance(50)).collect();
    if ids.is_empty() {
        return;
    }
    let named = ids.iter().map(|id| (*id, 0)).collect();
    if random.chance(80) {
        let op = user.invoked(Call::new(Verb::Replay, name).named(named));
        user.say(op, said(queue.replay(&ids).await, |_| Vec::new()));
    } else {
        let op = user.invoked(Call::new(Verb::Discard, name).named(named));
        user.say(op, said(queue.discard(&ids).await, |_| Vec::new()));
    }
}

async fn find(user: &User, queue: &Queue<String>, name: &str) {
    for message in record(user, Verb::Peek, name, queue.peek(5)).await.unwrap_or_default() {
        record(user, Verb::Find, name, queue.find(message.id)).await;
    }
}

/// Cancels or reschedules messages in a transaction, which is sometimes rolled back. Sometimes
/// reschedules them to a given time without a transaction instead.
async fn change_in(user: &User, db: &Db, queue: &Queue<String>, name: &str, random: &mut Random) {
    let peeked = record(user, Verb::Peek, name, queue.peek(8)).await.unwrap_or_default();
    let ids: Vec<i64> = peeked.iter().map(|message| message.id).collect();
    if ids.is_empty() {
        return;
    }
    let named = ids.iter().map(|id| (*id, 0)).collect();
    let after = Duration::from_millis(random.below(plan::DELAY_MS));
    if random.chance(30) {
        let op = user.invoked(Call::new(Verb::Reschedule, name).named(named));
        user.say(op, said(queue.reschedule(&ids, SystemTime::now() + after).await, |ids| ids));
        return;
    }
    let (cancels, rolls_back) = (random.chance(50), random.chance(30));
    let op = user.invoked(Call::new(if cancels { Verb::Cancel } else { Verb::Reschedule }, name).named(named));
    let outcome = async {
        let transaction = db.begin().await?;
        let changed = if cancels {
            queue.cancel_in(&transaction, &ids).await?
        } else {
            queue.reschedule_in(&transaction, &ids, after).await?
        };
        if rolls_back {
            transaction.rollback().await.map(|()| None)
        } else {
            transaction.commit().await.map(|()| Some(changed))
        }
    };
    user.end(op, outcome.await, |changed| match changed {
        Some(changed) => Said::ids(changed.clone()),
        None => Said::Failed("rolled back".to_owned()),
    });
}
