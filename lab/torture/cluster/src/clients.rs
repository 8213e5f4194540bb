//! Clients as users write them: producers, workers, listeners, and consumers with each guarantee.
//! No client has code for a failover.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{sync::watch, task::JoinSet, time::sleep};
use trunkline::{Db, Error, Message, Queue, Settings, Wait, Worker, postgres::Statement};

use crate::{
    Failure,
    history::{History, QUEUES, Stream, Told},
};

/// The pause between two messages of one producer.
const PACE: Duration = Duration::from_millis(40);
/// The pause between two messages if a consumer waits for each of them.
const RARE: Duration = Duration::from_millis(200);
/// The duration of a lease. It is shorter than a failover, so that leases expire during the
/// failover.
const LEASE: Duration = Duration::from_secs(5);
const PRODUCERS: usize = 2;
const CONSUMERS: usize = 2;

static PROMISE: Statement<(i64,), u64> = Statement::new("insert into promise values ($1)");
static ENTER: Statement<(i64, i64), u64> = Statement::new("insert into ledger values ($1, $2)");
const TABLES: &str = "create table promise (payload int8); create table ledger (payload int8, id int8); create table beat (at timestamptz)";

pub struct Clients {
    pub history: Arc<History>,
    sending: watch::Sender<bool>,
    consuming: watch::Sender<bool>,
    producers: JoinSet<()>,
    consumers: JoinSet<()>,
}

/// Creates the queues and tables of the clients.
pub async fn prepare(url: &str) -> Result<(), Failure> {
    let db = Db::connect(url).await?;
    db.migrate().await?;
    for queue in QUEUES {
        let settings = Settings::of::<i64>().lease(LEASE).max_attempts(1_000_000);
        db.create_queue(queue, &settings).await?;
    }
    for table in TABLES.split("; ") {
        db.run(&Statement::<(), ()>::new(table), ()).await?;
    }
    Ok(())
}

impl Clients {
    pub async fn start(url: &str) -> Result<Self, Failure> {
        let (sending, sends) = watch::channel(true);
        let (consuming, goes_on) = watch::channel(true);
        let history = Arc::<History>::default();
        let mut all = Self { history, sending, consuming, producers: JoinSet::new(), consumers: JoinSet::new() };
        let db = Db::connect(url).await?;
        all.produce(&db, &sends).await?;
        for _ in 0..CONSUMERS {
            // Each consumer is like a separate program, with its own connections.
            all.consume(&Db::connect(url).await?, &goes_on).await?;
        }
        all.listen(&Db::connect(url).await?, &sends, &goes_on).await?;
        Ok(all)
    }

    async fn produce(&mut self, db: &Db, sends: &watch::Receiver<bool>) -> Result<(), Failure> {
        let numbers = Arc::new(AtomicI64::new(1));
        for name in ["work", "acked", "ledger", "taken"] {
            let queue = db.queue::<i64>(name).await?;
            for _ in 0..PRODUCERS {
                self.producers.spawn(send(
                    queue.clone(),
                    name,
                    self.history.clone(),
                    numbers.clone(),
                    sends.clone(),
                    PACE,
                ));
            }
        }
        let queue = db.queue::<i64>("ledger").await?;
        self.producers.spawn(promise(db.clone(), queue, self.history.clone(), numbers, sends.clone()));
        Ok(())
    }

    async fn consume(&mut self, db: &Db, goes_on: &watch::Receiver<bool>) -> Result<(), Failure> {
        let history = &self.history;
        self.consumers.spawn(work(db.queue("work").await?, history.clone(), goes_on.clone()));
        self.consumers.spawn(lease_and_ack(db.queue("acked").await?, history.clone(), goes_on.clone()));
        self.consumers.spawn(enter(db.queue("ledger").await?, history.clone(), goes_on.clone()));
        self.consumers.spawn(take(
            db.queue("taken").await?,
            "taken",
            Stream::Take,
            Wait::Adaptive,
            history.clone(),
            goes_on.clone(),
        ));
        Ok(())
    }

    async fn listen(
        &mut self,
        db: &Db,
        sends: &watch::Receiver<bool>,
        goes_on: &watch::Receiver<bool>,
    ) -> Result<(), Failure> {
        let (bell, hand) = (db.queue::<i64>("bell").await?, db.queue::<i64>("hand").await?);
        let history = &self.history;
        let numbers = Arc::new(AtomicI64::new(1));
        self.producers.spawn(send(bell.clone(), "bell", history.clone(), numbers.clone(), sends.clone(), RARE));
        self.producers.spawn(hand_over(hand.clone(), history.clone(), numbers, sends.clone()));
        self.consumers.spawn(take(bell, "bell", Stream::Bell, Wait::Notify, history.clone(), goes_on.clone()));
        self.consumers.spawn(be_handed(hand, history.clone(), goes_on.clone()));
        Ok(())
    }

    /// Stops the producers. Afterwards the history of their enqueues is complete.
    pub async fn send_no_more(&mut self) -> Result<(), Failure> {
        self.sending.send_replace(false);
        ended(&mut self.producers).await
    }

    pub async fn end(mut self) -> Result<Arc<History>, Failure> {
        self.consuming.send_replace(false);
        ended(&mut self.consumers).await?;
        Ok(self.history)
    }

    /// Returns true if each stream has had a success after `since`.
    pub fn all_went_on(&self, since: Instant) -> bool {
        Stream::ALL.iter().all(|(stream, _)| self.history.first(*stream, since).is_some())
    }
}

/// Waits for all tasks. A panic in any task fails the run.
async fn ended(tasks: &mut JoinSet<()>) -> Result<(), Failure> {
    while let Some(ended) = tasks.join_next().await {
        ended?;
    }
    Ok(())
}

fn told(history: &History, stream: Stream, unknown: bool, error: &Error) -> Told {
    history.erred(stream, unknown, error);
    if unknown { Told::Unknown } else { Told::Failed }
}

async fn send(
    queue: Queue<i64>,
    name: &'static str,
    history: Arc<History>,
    numbers: Arc<AtomicI64>,
    sends: watch::Receiver<bool>,
    pace: Duration,
) {
    while *sends.borrow() {
        let payload = numbers.fetch_add(1, Ordering::Relaxed);
        let told = match queue.enqueue(payload).await {
            Ok(enqueued) => {
                history.goes_on(Stream::Enqueue);
                Told::Ok(enqueued.id())
            }
            Err(error) => told(&history, Stream::Enqueue, error.is_outcome_unknown(), &error),
        };
        history.sent(name, payload, told);
        sleep(pace).await;
    }
}

/// Commits a row and a message in one transaction.
async fn promise(
    db: Db,
    queue: Queue<i64>,
    history: Arc<History>,
    numbers: Arc<AtomicI64>,
    sends: watch::Receiver<bool>,
) {
    while *sends.borrow() {
        let payload = -numbers.fetch_add(1, Ordering::Relaxed);
        let gathered = async {
            let transaction = db.begin().await?;
            transaction.send(&PROMISE, (payload,)).await?;
            let id = queue.enqueue_in(&transaction, payload).await?.id();
            Ok::<_, Error>((transaction, id))
        };
        let told = match gathered.await {
            // The transaction failed, regardless of the kind of error, because no commit was sent.
            Err(error) => told(&history, Stream::EnqueueIn, false, &error),
            Ok((transaction, id)) => match transaction.commit().await {
                Ok(()) => {
                    history.goes_on(Stream::EnqueueIn);
                    Told::Ok(id)
                }
                Err(error) => told(&history, Stream::EnqueueIn, error.is_outcome_unknown(), &error),
            },
        };
        history.sent("ledger", payload, told);
        sleep(PACE).await;
    }
}

async fn work(queue: Queue<i64>, history: Arc<History>, mut goes_on: watch::Receiver<bool>) {
    let seen = history.clone();
    let worker = Worker::new(queue, move |message: Message<i64>| {
        seen.delivered("work", &message);
        seen.goes_on(Stream::Work);
        async { Ok::<_, Infallible>(()) }
    });
    let until_the_end = async move {
        let _ = goes_on.wait_for(|on| !on).await;
    };
    if let Err(error) = worker.run(until_the_end).await {
        // Records the error for the check. A worker should outlive every outage, so the check
        // counts a worker that ended by itself as a violation.
        history.erred(Stream::Work, false, &error);
    }
}

async fn lease_and_ack(queue: Queue<i64>, history: Arc<History>, mut goes_on: watch::Receiver<bool>) {
    let mut consumer = queue.consumer(Wait::Adaptive);
    loop {
        let leased = tokio::select! {
            leased = consumer.lease(10) => leased,
            _ = goes_on.wait_for(|on| !on) => return,
        };
        let messages = match leased {
            Ok(messages) => messages,
            Err(error) => {
                history.erred(Stream::LeaseAck, error.is_outcome_unknown(), &error);
                sleep(PACE).await;
                continue;
            }
        };
        for message in &messages {
            history.delivered("acked", message);
        }
        let outcome = queue.ack(&messages).await;
        for message in &messages {
            let told = match &outcome {
                Ok(()) => Told::Ok(message.id),
                Err(error) if error.lost_ids().contains(&message.id) => Told::Failed,
                Err(error) if error.is_lease_lost() => Told::Ok(message.id),
                Err(error) if error.is_outcome_unknown() => Told::Unknown,
                Err(_) => Told::Failed,
            };
            history.of("acked").acked.push(crate::history::Acked { lease: message.lease(), told });
        }
        match outcome {
            Ok(()) => history.goes_on(Stream::LeaseAck),
            Err(error) => history.erred(Stream::LeaseAck, error.is_outcome_unknown(), &error),
        }
    }
}

async fn enter(queue: Queue<i64>, history: Arc<History>, mut goes_on: watch::Receiver<bool>) {
    let mut consumer = queue.consumer(Wait::Adaptive);
    loop {
        let entering = consumer.take_with(20, |transaction, messages| {
            Box::pin(async move {
                for message in &messages {
                    transaction.send(&ENTER, (message.payload, message.id)).await?;
                }
                Ok::<_, Error>(messages)
            })
        });
        let entered = tokio::select! {
            entered = entering => entered,
            _ = goes_on.wait_for(|on| !on) => return,
        };
        match entered {
            Ok(messages) => {
                for message in &messages {
                    history.delivered("ledger", message);
                }
                history.goes_on(Stream::Ledger);
            }
            Err(error) => {
                history.erred(Stream::Ledger, error.is_outcome_unknown(), &error);
                sleep(PACE).await;
            }
        }
    }
}

async fn take(
    queue: Queue<i64>,
    name: &'static str,
    stream: Stream,
    wait: Wait,
    history: Arc<History>,
    mut goes_on: watch::Receiver<bool>,
) {
    let mut consumer = queue.consumer(wait);
    loop {
        let taken = tokio::select! {
            taken = consumer.take(20) => taken,
            _ = goes_on.wait_for(|on| !on) => return,
        };
        match taken {
            Ok(messages) => {
                for message in &messages {
                    history.delivered(name, message);
                }
                history.goes_on(stream);
            }
            Err(error) => {
                history.erred(stream, error.is_outcome_unknown(), &error);
                sleep(PACE).await;
            }
        }
    }
}

async fn hand_over(queue: Queue<i64>, history: Arc<History>, numbers: Arc<AtomicI64>, sends: watch::Receiver<bool>) {
    while *sends.borrow() {
        let payload = numbers.fetch_add(1, Ordering::Relaxed);
        let told = match queue.send_direct(payload).await {
            Ok(enqueued) => Told::Ok(enqueued.id()),
            Err(error) => told(&history, Stream::Hand, error.is_outcome_unknown(), &error),
        };
        history.sent("hand", payload, told);
        sleep(RARE).await;
    }
}

async fn be_handed(queue: Queue<i64>, history: Arc<History>, mut goes_on: watch::Receiver<bool>) {
    let mut consumer = queue.consumer(Wait::Adaptive);
    loop {
        let handed = tokio::select! {
            handed = consumer.receive_direct() => handed,
            _ = goes_on.wait_for(|on| !on) => return,
        };
        match handed {
            Ok(message) => {
                history.delivered("hand", &message);
                history.goes_on(Stream::Hand);
            }
            Err(error) => {
                history.erred(Stream::Hand, error.is_outcome_unknown(), &error);
                sleep(PACE).await;
            }
        }
    }
}
