//! Enqueues with unique keys. Several calls race for the same key.

use std::time::Duration;

use futures_util::future::join_all;
use trunkline::{Db, Draft, Enqueued, Error, Queue, Unique};

use super::{draft::draft, user::User};
use crate::{
    history::{Call, Said, Verb},
    plan,
    random::Random,
    tag,
};

pub async fn race(user: User, db: Db, queue: Queue<String>) {
    let mut random = user.random();
    while !user.is_stopped() {
        let calls = user.tags(random.within(1, 6)).into_iter().map(|tag| (tag, random.chance(30))).collect::<Vec<_>>();
        let ids: Vec<i64> = match random.below(100) {
            // Makes concurrent calls, which share a statement.
            0..60 => {
                let each = calls.into_iter().map(|call| one(&user, &queue, call));
                join_all(each).await.into_iter().flatten().collect()
            }
            60..80 => many(&user, &queue, &calls).await,
            _ => in_transaction(&user, &db, &queue, &calls, &mut random).await,
        };
        if random.chance(10) && !ids.is_empty() {
            let op = user.invoked(Call::new(Verb::Cancel, plan::UNIQUE).named(ids.iter().map(|id| (*id, 0)).collect()));
            // Counts an error as an unknown outcome, because a failed call by ids may have changed
            // some of the messages.
            let unsure = |error: Error| Said::Unknown(error.to_string());
            user.say(op, queue.cancel(&ids).await.map_or_else(unsure, Said::ids));
        }
        user.rest(Duration::from_millis(random.within(10, 90))).await;
    }
}

/// A tag, and a flag that is true if the tag's message should replace another message.
type Brought = (u64, bool);

fn of((tag, replaces): Brought) -> Draft<String> {
    let unique = Unique::key(tag::unique(tag));
    draft(plan::UNIQUE, tag, 0).unique(if replaces { unique.replacing() } else { unique })
}

fn invoked(user: &User, (tag, replaces): Brought) -> u64 {
    let verb = if replaces { Verb::Replace } else { Verb::EnqueueUnique };
    user.invoked(Call::new(verb, plan::UNIQUE).tags(vec![tag]))
}

fn said(enqueued: Enqueued) -> Said {
    match enqueued {
        Enqueued::New(id) => Said::ids(vec![id]),
        Enqueued::Replaced(id) => Said::Replaced(id),
        Enqueued::Duplicate(id) => Said::Held(id),
    }
}

/// Enqueues one message. Returns its id if the message is new.
async fn one(user: &User, queue: &Queue<String>, call: Brought) -> Option<i64> {
    let op = invoked(user, call);
    let outcome = user.end(op, queue.enqueue(of(call)).await, |enqueued| said(*enqueued));
    outcome.filter(|enqueued| enqueued.is_new()).map(Enqueued::id)
}

/// Enqueues several messages with one call, which counts as one operation per message.
async fn many(user: &User, queue: &Queue<String>, calls: &[Brought]) -> Vec<i64> {
    let ops: Vec<u64> = calls.iter().map(|call| invoked(user, *call)).collect();
    tell(user, &ops, queue.enqueue_many(calls.iter().map(|call| of(*call)).collect::<Vec<_>>()).await.map(Some))
}

/// Enqueues in a transaction, which is sometimes rolled back.
async fn in_transaction(
    user: &User,
    db: &Db,
    queue: &Queue<String>,
    calls: &[Brought],
    random: &mut Random,
) -> Vec<i64> {
    let (hold, rolls_back) = (Duration::from_millis(random.below(40)), random.chance(20));
    let ops: Vec<u64> = calls.iter().map(|call| invoked(user, *call)).collect();
    let outcome = async {
        let transaction = db.begin().await?;
        let drafts: Vec<_> = calls.iter().map(|call| of(*call)).collect();
        let enqueued = queue.enqueue_many_in(&transaction, drafts).await?;
        tokio::time::sleep(hold).await;
        if rolls_back {
            transaction.rollback().await.map(|()| None)
        } else {
            transaction.commit().await.map(|()| Some(enqueued))
        }
    };
    tell(user, &ops, outcome.await)
}

/// Records the outcome of each operation. Returns the ids of the new messages, which are none after
/// a rollback.
fn tell(user: &User, ops: &[u64], outcome: Result<Option<Vec<Enqueued>>, Error>) -> Vec<i64> {
    match outcome {
        Ok(Some(all)) => {
            for (op, enqueued) in ops.iter().zip(&all) {
                user.say(*op, said(*enqueued));
            }
            all.into_iter().filter(|enqueued| enqueued.is_new()).map(Enqueued::id).collect()
        }
        Ok(None) => {
            for op in ops {
                user.say(*op, Said::Failed("rolled back".to_owned()));
            }
            Vec::new()
        }
        Err(error) => {
            for op in ops {
                user.end(*op, Err::<(), _>(error.clone()), |()| Said::ok());
            }
            Vec::new()
        }
    }
}
