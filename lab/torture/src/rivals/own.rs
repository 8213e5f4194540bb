//! Runs Trunkline among its rivals: this program implements the protocol of `lab/peers/README.md`.

use std::{io::Read, path::PathBuf, time::Duration};

use tokio::sync::watch;
use trunkline::{
    Consumer, Db, Dequeue, Failure, Message, Queue, RetryPolicy, Settings, Wait, Worker, postgres::Statement,
};
use trunkline_programs::say;

use super::{
    judge::EXACT,
    payload::{self, Work, work},
};
use crate::{
    history::{Call, Log, Said, Verb},
    plan::MAX_ATTEMPTS,
    roles::{Part, Role, user::User},
};

const WORK: &str = "work";
const RETRY: Duration = Duration::from_millis(200);
/// The number of consumers of each kind in a process.
const SLOTS: usize = 2;

static ENTER: Statement<(i64, String), u64> = Statement::new("insert into ledger (tag, op) values ($1, $2)");

/// The settings of an adapter, from the environment.
struct Adapter {
    part: String,
    url: String,
    history: PathBuf,
    nr: u64,
    seed: u64,
    lease_ms: u64,
}

impl Adapter {
    fn told() -> Result<Self, String> {
        let text =
            |name: &str| std::env::var(name).map_err(|_| format!("{name} is not set: this is started by `rivals`"));
        let number = |name: &str| text(name)?.parse().map_err(|error| format!("{name}: {error}"));
        Ok(Self {
            part: text("RIVAL_PART")?,
            url: text("RIVAL_URL")?,
            history: text("RIVAL_HISTORY")?.into(),
            nr: number("RIVAL_NR")?,
            seed: number("RIVAL_SEED")?,
            lease_ms: number("RIVAL_LEASE_MS")?,
        })
    }
}

/// Plays a part until the input ends.
pub fn play() -> Result<(), String> {
    let adapter = &Adapter::told()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    if adapter.part == "install" {
        return runtime.block_on(install(adapter)).map_err(|error| error.to_string());
    }
    let log = Log::create(&adapter.history)
        .map_err(|error| format!("cannot write {}: {error}", adapter.history.display()))?;
    let (stop, stopped) = watch::channel(false);
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = stop.send(true);
    });
    let (nr, seed, url, history) = (adapter.nr, adapter.seed, adapter.url.clone(), adapter.history.clone());
    let user = User::new(&Part { role: Role::Leaser, nr, seed, url, history }, log, stopped);
    runtime.block_on(async {
        match &*adapter.part {
            "produce" => produce(user, adapter.lease_ms).await,
            "consume" => consume(user, adapter.lease_ms).await,
            part => return Err(format!("there is no part {part:?}: it is install, produce or consume")),
        }
        Ok(())
    })
}

async fn install(adapter: &Adapter) -> Result<(), trunkline::Error> {
    let db = Db::connect(&adapter.url).await?;
    db.migrate().await?;
    let lease = Duration::from_millis(adapter.lease_ms);
    for name in [WORK, EXACT] {
        db.create_queue(name, &Settings::of::<String>().max_attempts(MAX_ATTEMPTS).lease(lease)).await?;
    }
    let settings = format!(
        "lease {} ms, max_attempts {MAX_ATTEMPTS}, retry after {} ms; per process {SLOTS} consumers that lease and acknowledge, {SLOTS} that \
         acknowledge in a transaction, and a Worker of {SLOTS}, which renews its leases",
        adapter.lease_ms,
        RETRY.as_millis()
    );
    say(serde_json::json!({ "version": env!("CARGO_PKG_VERSION"), "settings": settings }));
    Ok(())
}

/// Enqueues about as many messages as the consumers can handle. Two thirds of them are for work,
/// and one third is for an effect.
async fn produce(user: User, lease_ms: u64) {
    let Some(db) = user.db().await else { return };
    let (Some(works), Some(exact)) = (user.queue(&db, WORK).await, user.queue(&db, EXACT).await) else { return };
    let mut random = user.random();
    while !user.is_stopped() {
        let (queue, name) = if random.chance(33) { (&exact, EXACT) } else { (&works, WORK) };
        let tags = user.tags(if random.chance(80) { 1 } else { 5 });
        let pause = pause(tags.len() as u64, lease_ms);
        let op = user.invoked(Call::new(Verb::Enqueue, name).tags(tags.clone()));
        let outcome = match &*tags {
            [tag] => queue.enqueue(payload::of(*tag)).await.map(|enqueued| vec![enqueued]),
            tags => queue.enqueue_many(tags.iter().map(|tag| payload::of(*tag))).await,
        };
        user.end(op, outcome, |all| Said::ids(all.iter().map(|enqueued| enqueued.id()).collect()));
        user.rest(pause).await;
    }
}

/// Returns the pause after `messages` messages. With forty messages per lease, the consumers are
/// busy about half of the time.
fn pause(messages: u64, lease_ms: u64) -> Duration {
    Duration::from_millis(lease_ms * messages / 40)
}

async fn consume(user: User, lease_ms: u64) {
    let Some(db) = user.db().await else { return };
    let (Some(works), Some(exact)) = (user.queue(&db, WORK).await, user.queue(&db, EXACT).await) else { return };
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..SLOTS {
        let of = |queue: &Queue<String>| Hand { user: user.clone(), db: db.clone(), queue: queue.clone(), lease_ms };
        tasks.spawn(of(&works).lease(works.consumer(Wait::Adaptive), WORK));
        tasks.spawn(of(&exact).lease(exact.consumer(Wait::Adaptive), EXACT));
    }
    tasks.spawn(live(user, works, lease_ms));
    while tasks.join_next().await.is_some() {}
}

/// Runs a worker, and restarts it after an error, as a supervisor would.
async fn live(user: User, queue: Queue<String>, lease_ms: u64) {
    while !user.is_stopped() {
        let hand = user.clone();
        let worker =
            Worker::new(queue.clone(), move |message: Message<String>| handle(hand.clone(), message, lease_ms));
        let worker = worker.concurrency(SLOTS).lease(Duration::from_millis(lease_ms)).retry(RetryPolicy::fixed(RETRY));
        if let Err(error) = worker.shutdown_after(Duration::from_secs(5)).run(user.stopped()).await {
            user.pause(&error).await;
        }
    }
}

/// Handles a message. The handler does not know when the lease began, and the worker renews the
/// lease.
async fn handle(user: User, message: Message<String>, lease_ms: u64) -> Result<(), Failure> {
    let (tag, lease) = (payload::tag(&message.payload), (message.id, message.attempt));
    let op = user.invoked(Call::new(Verb::Handle, WORK).named(vec![lease]).tags(vec![tag]).ms(lease_ms));
    let Work { lasts, fails } = work(tag, message.attempt, lease_ms);
    tokio::time::sleep(Duration::from_millis(lasts)).await;
    user.say(op, if fails { Said::Failed("it failed".to_owned()) } else { Said::ok() });
    if fails { Err(Failure::retry("it failed")) } else { Ok(()) }
}

struct Hand {
    user: User,
    db: Db,
    queue: Queue<String>,
    lease_ms: u64,
}

impl Hand {
    async fn lease(self, mut consumer: Consumer<String>, name: &'static str) {
        while !self.user.is_stopped() {
            let op = self.user.invoked(Call::new(Verb::Lease, name).n(1).ms(self.lease_ms));
            let outcome = consumer.lease(Dequeue::up_to(1).within(Duration::from_millis(500))).await;
            let got = |messages: &Vec<Message<String>>| {
                messages.iter().map(|one| (one.id, one.attempt, payload::tag(&one.payload))).collect()
            };
            let messages = self.user.end(op, outcome, |messages| Said::got(got(messages)));
            if messages.is_none() {
                self.user.rest(Duration::from_millis(100)).await;
            }
            for message in messages.unwrap_or_default() {
                self.work(&message, name).await;
            }
        }
    }

    async fn work(&self, message: &Message<String>, name: &'static str) {
        let tag = payload::tag(&message.payload);
        let Work { lasts, fails } = work(tag, message.attempt, self.lease_ms);
        tokio::time::sleep(Duration::from_millis(lasts)).await;
        let (lease, messages) = (vec![(message.id, message.attempt)], std::slice::from_ref(message));
        if name == EXACT {
            self.ack_in(message, tag).await;
        } else if fails {
            let end = self.queue.retry(messages, RETRY, "it failed");
            self.user.end_leases(Verb::Retry, name, lease, 0, end).await;
        } else {
            self.user.end_leases(Verb::Ack, name, lease, 0, self.queue.ack(messages)).await;
        }
    }

    /// Acknowledges the message in the transaction that writes the ledger entry.
    async fn ack_in(&self, message: &Message<String>, tag: u64) {
        let (lease, messages) = (vec![(message.id, message.attempt)], std::slice::from_ref(message));
        let op = self.user.invoked(Call::new(Verb::AckIn, EXACT).named(lease));
        let outcome = async {
            let transaction = self.db.begin().await?;
            transaction.run(&ENTER, (tag.cast_signed(), self.user.name(op))).await?;
            self.queue.ack_in(&transaction, messages).await?;
            transaction.commit().await
        };
        self.user.end(op, outcome.await, |()| Said::ok());
    }
}
