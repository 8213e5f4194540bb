//! At least once: leases messages, and ends their leases in every way, sometimes too late.

use std::time::Duration;

use futures_util::future::join_all;
use trunkline::{Consumer, Dequeue, Message, Queue, Wait};

use super::{
    limited, operator, streamer,
    user::{User, got, named},
};
use crate::{
    history::{Call, Said, Verb},
    plan::{self, LEASE},
    random::Random,
};

const LEASE_MS: u64 = LEASE.as_millis() as u64;

pub async fn run(user: User) -> Result<(), String> {
    let Some(db) = user.db().await else { return Ok(()) };
    let mut tasks = tokio::task::JoinSet::new();
    for nr in 0..7 {
        let name = match nr {
            4 => plan::PURGED,
            5 | 6 => plan::UNIQUE,
            _ => plan::LEAST,
        };
        let Some(queue) = user.queue(&db, name).await else { return Ok(()) };
        let wait = [Wait::Adaptive, Wait::Notify, Wait::poll()][nr % 3];
        let consumer = queue.consumer(wait);
        tasks.spawn(Leaser { user: user.clone(), queue, consumer, name, random: user.random() }.consume());
    }
    let Some(queue) = user.queue(&db, plan::LEAST).await else { return Ok(()) };
    tasks.spawn(streamer::stream(user.clone(), queue.clone()));
    tasks.spawn(streamer::lease_in_transactions(user.clone(), db.clone(), queue));
    let (capped, metered) = (user.queue(&db, plan::CAPPED).await, user.queue(&db, plan::METERED).await);
    let (Some(capped), Some(metered)) = (capped, metered) else { return Ok(()) };
    for _ in 0..2 {
        tasks.spawn(limited::lease(user.clone(), capped.clone()));
        tasks.spawn(limited::take(user.clone(), metered.clone()));
    }
    tasks.spawn(operator::operate(user.clone(), db));
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|error| format!("a task ended: {error}"))?;
    }
    Ok(())
}

struct Leaser {
    user: User,
    queue: Queue<String>,
    consumer: Consumer<String>,
    name: &'static str,
    random: Random,
}

impl Leaser {
    async fn consume(mut self) {
        while !self.user.is_stopped() {
            let mut messages = if self.random.chance(15) { self.lease_together().await } else { self.lease().await };
            while !messages.is_empty() && self.random.chance(25) && !self.user.is_stopped() {
                messages = self.ack_and_lease(&messages).await;
            }
            self.end(messages).await;
            let pause = Duration::from_millis(self.random.within(5, 60));
            self.user.rest(pause).await;
        }
    }

    fn n(&mut self) -> usize {
        if self.random.chance(40) { self.random.within(1, 4) as usize } else { self.random.within(5, 50) as usize }
    }

    async fn lease(&mut self) -> Vec<Message<String>> {
        let n = self.n();
        let op = self.user.invoked(Call::new(Verb::Lease, self.name).n(n).ms(LEASE_MS));
        let said = |messages: &Vec<_>| Said::got(got(messages));
        if self.random.chance(8) {
            let patience = Duration::from_micros(self.random.below(3000));
            match tokio::time::timeout(patience, self.consumer.lease(n)).await {
                Ok(outcome) => return self.user.end(op, outcome, said).unwrap_or_default(),
                Err(_) => self.user.say(op, Said::Dropped),
            }
            return Vec::new();
        }
        let outcome = self.consumer.lease(Dequeue::up_to(n).within(Duration::from_millis(300))).await;
        self.user.end(op, outcome, said).unwrap_or_default()
    }

    /// Leases with concurrent calls, which share a statement. Each call receives a part of the
    /// rows.
    async fn lease_together(&mut self) -> Vec<Message<String>> {
        let calls: Vec<usize> = (0..self.random.within(2, 6)).map(|_| self.n()).collect();
        let (user, queue, name) = (&self.user, &self.queue, self.name);
        let calls = calls.into_iter().map(|n| async move {
            let op = user.invoked(Call::new(Verb::Lease, name).n(n).ms(LEASE_MS));
            user.end(op, queue.lease(n).await, |messages| Said::got(got(messages))).unwrap_or_default()
        });
        join_all(calls).await.into_iter().flatten().collect()
    }

    /// Acknowledges and leases in one round trip, recorded as two operations.
    async fn ack_and_lease(&mut self, done: &[Message<String>]) -> Vec<Message<String>> {
        let n = self.n();
        let ack = self.user.invoked(Call::new(Verb::Ack, self.name).named(named(done)));
        let lease = self.user.invoked(Call::new(Verb::Lease, self.name).n(n).ms(LEASE_MS));
        match self.queue.ack_and_lease(done, n).await {
            Ok((messages, lost)) => {
                self.user.say(ack, Said::Ok { ids: Vec::new(), got: Vec::new(), lost });
                self.user.say(lease, Said::got(got(&messages)));
                messages
            }
            Err(error) => {
                self.user.end(ack, Err::<(), _>(error.clone()), |()| Said::ok());
                self.user.end(lease, Err::<(), _>(error), |()| Said::ok());
                Vec::new()
            }
        }
    }

    /// Ends the leases. Often all leases end in the same way. Otherwise they are divided into
    /// groups, which end one after another or at the same time.
    async fn end(&mut self, mut messages: Vec<Message<String>>) {
        let (share, at_once) = (self.random.chance(50), self.random.chance(60));
        let mut parts = Vec::new();
        while !messages.is_empty() {
            let size = if share { messages.len() } else { self.random.within(1, 8) as usize };
            let part = messages.split_off(messages.len().saturating_sub(size));
            let random = Random::of(self.random.next(), 0);
            parts.push(Share {
                user: self.user.clone(),
                queue: self.queue.clone(),
                name: self.name,
                messages: part,
                random,
            });
        }
        if at_once {
            join_all(parts.into_iter().map(Share::end)).await;
        } else {
            for part in parts {
                part.end().await;
            }
        }
    }
}

/// Messages whose leases end in the same way.
struct Share {
    user: User,
    queue: Queue<String>,
    name: &'static str,
    messages: Vec<Message<String>>,
    random: Random,
}

impl Share {
    async fn end(self) {
        let Self { user, queue, name, messages, mut random } = self;
        let (leases, messages) = (named(&messages), &messages);
        match random.below(100) {
            0..55 => user.end_leases(Verb::Ack, name, leases, 0, queue.ack(messages)).await,
            55..63 => user.end_leases(Verb::Archive, name, leases, 0, queue.archive(messages)).await,
            63..73 => {
                let delay = random.below(600);
                let end = queue.retry(messages, Duration::from_millis(delay), "it failed");
                user.end_leases(Verb::Retry, name, leases, delay, end).await;
            }
            73..78 => user.end_leases(Verb::Bury, name, leases, 0, queue.bury(messages, plan::BURIED)).await,
            78..84 => user.end_leases(Verb::Release, name, leases, 0, queue.release(messages)).await,
            84..91 => {
                let by = random.within(500, LEASE_MS);
                let end = queue.extend(messages, Duration::from_millis(by));
                user.end_leases(Verb::Extend, name, leases.clone(), by, end).await;
                user.rest(Duration::from_millis(random.below(400))).await;
                user.end_leases(Verb::Ack, name, leases, 0, queue.ack(messages)).await;
            }
            91..96 => {
                // Acknowledges too late: the lease has ended, and another consumer may have the
                // message.
                user.rest(LEASE + Duration::from_millis(random.within(50, 500))).await;
                user.end_leases(Verb::Ack, name, leases, 0, queue.ack(messages)).await;
            }
            96..98 => {
                // Two tasks end the same lease. One of them is refused.
                let (delay, error) = (Duration::from_millis(100), "it failed");
                let ack = user.end_leases(Verb::Ack, name, leases.clone(), 0, queue.ack(messages));
                if random.chance(50) {
                    tokio::join!(ack, user.end_leases(Verb::Ack, name, leases, 0, queue.ack(messages)));
                } else {
                    tokio::join!(
                        ack,
                        user.end_leases(Verb::Retry, name, leases, 100, queue.retry(messages, delay, error))
                    );
                }
            }
            _ => {} // the lease expires by itself
        }
    }
}
