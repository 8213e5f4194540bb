//! Enqueues messages in every way, and cancels and reschedules its own messages.

use std::{collections::HashMap, time::Duration};

use futures_util::future::join_all;
use trunkline::{Db, Enqueued, Queue};

use super::{draft::draft, racer, user::User};
use crate::{
    history::{Call, Said, Verb},
    plan,
    random::Random,
};

/// The number of tasks in a process. They share connections, and therefore also rows.
const TASKS: usize = 6;
/// The pause between two messages for the listener. Events that could wake the listener by chance
/// occur more often than that.
const BELL: Duration = Duration::from_secs(3);

pub async fn run(user: User) -> Result<(), String> {
    let Some(db) = user.db().await else { return Ok(()) };
    let mut queues = HashMap::new();
    for name in plan::QUEUES {
        let Some(queue) = user.queue(&db, name).await else { return Ok(()) };
        queues.insert(name, queue);
    }
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..TASKS {
        let producer = Producer { user: user.clone(), db: db.clone(), queues: queues.clone(), random: user.random() };
        tasks.spawn(producer.produce());
    }
    for _ in 0..2 {
        tasks.spawn(racer::race(user.clone(), db.clone(), queues[plan::UNIQUE].clone()));
    }
    tasks.spawn(ring(user, queues[plan::BELL].clone()));
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|error| format!("a task ended: {error}"))?;
    }
    Ok(())
}

/// Enqueues a message at intervals, for a consumer that only listens.
async fn ring(user: User, bell: Queue<String>) {
    let mut random = user.random();
    while !user.is_stopped() {
        user.rest(BELL + Duration::from_millis(random.below(1000))).await;
        let tag = user.tag();
        let op = user.invoked(Call::new(Verb::Enqueue, plan::BELL).tags(vec![tag]));
        user.end(op, bell.enqueue(draft(plan::BELL, tag, 0)).await, |enqueued| Said::ids(vec![enqueued.id()]));
    }
}

fn ids_of(all: Vec<Enqueued>) -> Vec<i64> {
    all.into_iter().map(Enqueued::id).collect()
}

struct Producer {
    user: User,
    db: Db,
    queues: HashMap<&'static str, Queue<String>>,
    random: Random,
}

impl Producer {
    async fn produce(mut self) {
        while !self.user.is_stopped() {
            let name = match self.random.below(100) {
                0..18 => plan::LEAST,
                18..28 => plan::KEYED,
                28..44 => plan::EXACT,
                44..59 => plan::WORKS,
                59..74 => plan::ONCE,
                74..87 => plan::FIFO,
                87..92 => plan::RANKED,
                92..94 => plan::CAPPED,
                94..96 => plan::METERED,
                _ => plan::PURGED,
            };
            let queue = self.queues[name].clone();
            let ids = match self.random.below(100) {
                0..40 => self.one(&queue, name).await,
                40..55 => self.together(&queue, name).await,
                55..75 => self.many(&queue, name).await,
                75..92 => self.in_transaction(&queue, name).await,
                92..96 if name == plan::ONCE => self.hand_over(&queue, name).await,
                _ => self.dropped(&queue, name).await,
            };
            if self.random.chance(8) && matches!(name, plan::LEAST | plan::WORKS | plan::ONCE | plan::EXACT) {
                self.change(&queue, name, &ids).await;
            }
            let pause = Duration::from_millis(self.random.within(5, 60));
            self.user.rest(pause).await;
        }
    }

    /// Returns a delay in milliseconds. It is 0 in the queues whose order is checked.
    fn delay(&mut self, name: &str) -> u64 {
        if !matches!(name, plan::FIFO | plan::RANKED) && self.random.chance(15) {
            self.random.below(plan::DELAY_MS)
        } else {
            0
        }
    }

    async fn one(&mut self, queue: &Queue<String>, name: &str) -> Vec<i64> {
        let (tag, delay) = (self.user.tag(), self.delay(name));
        let op = self.user.invoked(Call::new(Verb::Enqueue, name).tags(vec![tag]).ms(delay));
        let outcome = queue.enqueue(draft(name, tag, delay)).await;
        self.user.end(op, outcome.map(Enqueued::id), |id| Said::ids(vec![*id])).into_iter().collect()
    }

    /// Enqueues with concurrent calls, which share rows and commits.
    async fn together(&mut self, queue: &Queue<String>, name: &str) -> Vec<i64> {
        let tags = self.user.tags(self.random.within(4, 40));
        let calls = tags.into_iter().map(|tag| {
            let (user, delay) = (self.user.clone(), self.delay(name));
            async move {
                let op = user.invoked(Call::new(Verb::Enqueue, name).tags(vec![tag]).ms(delay));
                let outcome = queue.enqueue(draft(name, tag, delay)).await;
                user.end(op, outcome.map(Enqueued::id), |id| Said::ids(vec![*id]))
            }
        });
        let calls: Vec<_> = calls.collect();
        join_all(calls).await.into_iter().flatten().collect()
    }

    async fn many(&mut self, queue: &Queue<String>, name: &str) -> Vec<i64> {
        let most = if self.random.chance(5) { 300 } else { 40 };
        let (tags, delay) = (self.user.tags(self.random.within(2, most)), self.delay(name));
        let op = self.user.invoked(Call::new(Verb::Enqueue, name).tags(tags.clone()).ms(delay));
        let drafts: Vec<_> = tags.iter().map(|tag| draft(name, *tag, delay)).collect();
        let outcome = queue.enqueue_many(drafts).await.map(ids_of);
        self.user.end(op, outcome, |ids| Said::ids(ids.clone())).unwrap_or_default()
    }

    /// Enqueues in a transaction that stays open for a while, as users' transactions often do.
    /// Sometimes the transaction is rolled back.
    async fn in_transaction(&mut self, queue: &Queue<String>, name: &str) -> Vec<i64> {
        let (tags, delay) = (self.user.tags(self.random.within(1, 8)), self.delay(name));
        let hold = Duration::from_millis(if self.random.chance(40) { self.random.below(900) } else { 0 });
        let (rolls_back, sends) = (self.random.chance(15), self.random.chance(50));
        let op = self.user.invoked(Call::new(Verb::EnqueueIn, name).tags(tags.clone()).ms(delay));
        let outcome = async {
            let transaction = self.db.begin().await?;
            let drafts: Vec<_> = tags.iter().map(|tag| draft(name, *tag, delay)).collect();
            let ids = ids_of(match sends {
                true => queue.send_enqueue_many(&transaction, drafts).await?.await?,
                false => queue.enqueue_many_in(&transaction, drafts).await?,
            });
            tokio::time::sleep(hold).await;
            if rolls_back {
                transaction.rollback().await.map(|()| None)
            } else {
                transaction.commit().await.map(|()| Some(ids))
            }
        };
        let said = |ids: &Option<Vec<i64>>| match ids {
            Some(ids) => Said::ids(ids.clone()),
            None => Said::Failed("rolled back".to_owned()),
        };
        self.user.end(op, outcome.await, said).flatten().unwrap_or_default()
    }

    async fn hand_over(&mut self, queue: &Queue<String>, name: &str) -> Vec<i64> {
        let tag = self.user.tag();
        let op = self.user.invoked(Call::new(Verb::HandOver, name).tags(vec![tag]));
        self.user.end(op, queue.send_direct(draft(name, tag, 0)).await, |sent| Said::ids(vec![sent.id()]));
        Vec::new()
    }

    /// Enqueues with a call that is dropped after a short time.
    async fn dropped(&mut self, queue: &Queue<String>, name: &str) -> Vec<i64> {
        let tag = self.user.tag();
        let op = self.user.invoked(Call::new(Verb::Enqueue, name).tags(vec![tag]));
        let patience = Duration::from_micros(self.random.below(1500));
        match tokio::time::timeout(patience, queue.enqueue(draft(name, tag, 0))).await {
            Ok(outcome) => drop(self.user.end(op, outcome, |enqueued| Said::ids(vec![enqueued.id()]))),
            Err(_) => self.user.say(op, Said::Dropped),
        }
        Vec::new()
    }

    async fn change(&mut self, queue: &Queue<String>, name: &str, ids: &[i64]) {
        let ids: Vec<i64> = ids.iter().copied().filter(|_| self.random.chance(50)).collect();
        if ids.is_empty() {
            return;
        }
        let named = ids.iter().map(|id| (*id, 0)).collect();
        // Counts an error as an unknown outcome, because a failed call by ids may have changed some
        // of the messages.
        let unsure = |error: trunkline::Error| Said::Unknown(error.to_string());
        if self.random.chance(50) {
            let op = self.user.invoked(Call::new(Verb::Cancel, name).named(named));
            self.user.say(op, queue.cancel(&ids).await.map_or_else(unsure, Said::ids));
        } else {
            let after = self.random.below(plan::DELAY_MS);
            let op = self.user.invoked(Call::new(Verb::Reschedule, name).named(named).ms(after));
            let outcome = queue.reschedule(&ids, Duration::from_millis(after)).await;
            self.user.say(op, outcome.map_or_else(unsure, Said::ids));
        }
    }
}
