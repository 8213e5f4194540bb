//! Exactly once: takes or acknowledges messages in the transaction that writes them to the ledger.

use std::time::Duration;

use trunkline::{
    Consumer, Db, Error, Failure, Message, Queue, Wait,
    postgres::{Statement, Transaction},
};

use super::user::{User, got, named, tag_of};
use crate::{
    history::{Call, Said, Verb},
    plan::{self, LEASE},
    random::Random,
    tag,
};

static ENTER: Statement<(Vec<i64>, Vec<i64>, String), u64> = Statement::new(plan::ENTER);
static ADD: Statement<(Vec<i32>, Vec<i64>), u64> = Statement::new(plan::ADD);

pub async fn run(user: User) -> Result<(), String> {
    let Some(db) = user.db().await else { return Ok(()) };
    let Some(queue) = user.queue(&db, plan::EXACT).await else { return Ok(()) };
    let mut tasks = tokio::task::JoinSet::new();
    for wait in [Wait::Adaptive, Wait::Notify, Wait::poll()] {
        let consumer = queue.consumer(wait).retry_after(Duration::from_millis(200));
        let (user, random) = (user.clone(), user.random());
        tasks.spawn(Ledger { user, db: db.clone(), queue: queue.clone(), consumer, random }.consume());
    }
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|error| format!("a task ended: {error}"))?;
    }
    Ok(())
}

/// Writes messages to the ledger, under the name of an operation.
pub async fn enter(transaction: &Transaction, messages: &[Message<String>], op: String) -> Result<(), Error> {
    let tags: Vec<u64> = messages.iter().map(tag_of).collect();
    let amounts: Vec<i64> = tags.iter().map(|tag| tag::amount(*tag)).collect();
    let accounts: Vec<i32> = tags.iter().map(|tag| tag::account(*tag)).collect();
    let tags = tags.into_iter().map(|tag| tag as i64).collect();
    transaction.send(&ENTER, (tags, amounts.clone(), op)).await?;
    transaction.run(&ADD, (accounts, amounts)).await.map(drop)
}

struct Ledger {
    user: User,
    db: Db,
    queue: Queue<String>,
    consumer: Consumer<String>,
    random: Random,
}

impl Ledger {
    async fn consume(mut self) {
        while !self.user.is_stopped() {
            match self.random.below(100) {
                0..45 => self.take_with().await,
                45..70 => self.take_in().await,
                _ => self.ack_in().await,
            }
            let pause = Duration::from_millis(self.random.within(5, 60));
            self.user.rest(pause).await;
        }
    }

    /// Takes with a closure that sometimes fails, and always fails for some messages.
    async fn take_with(&mut self) {
        let n = self.random.within(1, 40) as usize;
        let fails = self.random.chance(8);
        let op = self.user.invoked(Call::new(Verb::TakeIn, plan::EXACT).n(n));
        let (user, mut tries) = (self.user.clone(), 0);
        let work = self.consumer.take_with(n, |transaction, messages| {
            tries += 1;
            let (user, fails_now) = (user.clone(), fails && tries == 1);
            Box::pin(async move {
                user.say(op, Said::Took(got(&messages)));
                if fails_now || messages.iter().any(|message| tag_of(message).is_multiple_of(211)) {
                    return Err(Failure::retry("it failed"));
                }
                Ok(enter(transaction, &messages, user.name(op)).await?)
            })
        });
        tokio::select! {
            outcome = work => drop(self.user.end(op, outcome, |()| Said::ok())),
            () = self.user.stopped() => self.user.say(op, Said::Dropped),
        }
    }

    async fn take_in(&mut self) {
        let n = self.random.within(1, 40) as usize;
        let rolls_back = self.random.chance(20);
        let op = self.user.invoked(Call::new(Verb::TakeIn, plan::EXACT).n(n));
        let outcome = async {
            let transaction = self.db.begin().await?;
            let messages = self.queue.take_in(&transaction, n).await?;
            self.user.say(op, Said::Took(got(&messages)));
            if !messages.is_empty() {
                enter(&transaction, &messages, self.user.name(op)).await?;
            }
            if rolls_back {
                return transaction.rollback().await.map(|()| Said::Failed("rolled back".to_owned()));
            }
            transaction.commit().await.map(|()| Said::ok())
        };
        self.user.end(op, outcome.await, Clone::clone);
    }

    /// Works outside a transaction, and then commits the effect and the acknowledgement together.
    async fn ack_in(&mut self) {
        let n = self.random.within(1, 30) as usize;
        let lease = self.user.invoked(Call::new(Verb::Lease, plan::EXACT).n(n).ms(LEASE.as_millis() as u64));
        let outcome = self.queue.lease(n).await;
        let messages = self.user.end(lease, outcome, |messages| Said::got(got(messages))).unwrap_or_default();
        if messages.is_empty() {
            return;
        }
        let late = self.random.chance(6);
        self.user.rest(if late { LEASE + Duration::from_millis(100) } else { Duration::from_millis(20) }).await;
        let (rolls_back, sends) = (self.random.chance(10), self.random.chance(50));
        let op = self.user.invoked(Call::new(Verb::AckIn, plan::EXACT).named(named(&messages)));
        let outcome = async {
            let transaction = self.db.begin().await?;
            self.user.say(op, Said::Took(got(&messages)));
            enter(&transaction, &messages, self.user.name(op)).await?;
            if sends {
                self.queue.send_ack(&transaction, &messages).await?.await?;
            } else {
                self.queue.ack_in(&transaction, &messages).await?;
            }
            if rolls_back {
                return transaction.rollback().await.map(|()| Said::Failed("rolled back".to_owned()));
            }
            transaction.commit().await.map(|()| Said::ok())
        };
        let said = match outcome.await {
            Ok(said) => said,
            // The transaction was dropped, which rolled it back. No message is acknowledged,
            // regardless of which lease was lost.
            Err(error) if error.is_lease_lost() => Said::Failed(error.to_string()),
            Err(error) if error.is_outcome_unknown() => Said::Unknown(error.to_string()),
            Err(error) => Said::Failed(error.to_string()),
        };
        self.user.say(op, said);
    }
}
