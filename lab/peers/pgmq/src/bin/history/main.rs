//! Runs pgmq through its own Rust client, for the checker. It reads with a visibility timeout,
//! deletes messages, and archives messages that have failed too often.

mod history;

use std::{env, io::Read, path::Path, time::Duration};

use history::History;
use peer::Failure;
use pgmq::{Message, PGMQueueExt};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::postgres::{PgPool, PgPoolOptions};
use tokio::{sync::watch, task::JoinSet, time::sleep};

const WORK: &str = "work";
const EXACT: &str = "exact";
/// The number of consumers per queue in a process.
const SLOTS: usize = 4;
const EXACT_SLOTS: usize = 2;
const IDLE: Duration = Duration::from_millis(100);

#[derive(Serialize, Deserialize)]
struct Payload {
    text: String,
}

/// Returns a payload with the number `tag` and padding derived from it.
fn payload(tag: u64) -> Payload {
    let filling = if tag % 61 == 0 { 5_000 } else { (tag % 90) as usize };
    Payload { text: format!("{tag}:{}", "x".repeat(filling)) }
}

fn tag(text: &str) -> u64 {
    let tag = text.split_once(':').and_then(|(tag, _)| tag.parse().ok());
    tag.filter(|tag| payload(*tag).text == text).unwrap_or(0)
}

fn told(name: &str) -> Result<String, Failure> {
    env::var(name).map_err(|_| format!("{name} is not set").into())
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Failure> {
    let pool = PgPoolOptions::new()
        .max_connections(8)
        .acquire_timeout(Duration::from_secs(5))
        .connect_lazy(&told("RIVAL_URL")?)?;
    let queue = PGMQueueExt::new_with_pool(pool.clone()).await;
    let lease: u64 = told("RIVAL_LEASE_MS")?.parse()?;
    let part = told("RIVAL_PART")?;
    if part == "install" {
        return install(&queue, lease).await;
    }
    let (stop, stopped) = watch::channel(false);
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = stop.send(true);
    });
    let (attempts, nr) = (told("RIVAL_ATTEMPTS")?.parse()?, told("RIVAL_NR")?.parse()?);
    let history = told("RIVAL_HISTORY")?;
    let process = Path::new(&history).file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let user = User { process, pool, queue, history: History::create(&history)?, stopped, lease, attempts };
    match &*part {
        "produce" => user.produce(nr).await,
        "consume" => {
            let mut tasks = JoinSet::new();
            (0..SLOTS).for_each(|_| drop(tasks.spawn(user.clone().consume(WORK))));
            (0..EXACT_SLOTS).for_each(|_| drop(tasks.spawn(user.clone().consume(EXACT))));
            while let Some(ended) = tasks.join_next().await {
                ended?;
            }
        }
        part => return Err(format!("there is no part {part:?}").into()),
    }
    Ok(())
}

async fn install(queue: &PGMQueueExt, lease: u64) -> Result<(), Failure> {
    let version = peer::install(queue, &[WORK, EXACT]).await?;
    let settings = format!(
        "logged queues, visibility timeout {} s; per process {SLOTS} consumers that read 1 and delete, {EXACT_SLOTS} that delete in a transaction; every \
         second slow handler extends its timeout (set_vt); a message that failed at its fifth read is archived",
        lease / 1000
    );
    println!("{}", json!({ "version": version, "settings": settings }));
    Ok(())
}

#[derive(Clone)]
struct User {
    process: String,
    pool: PgPool,
    queue: PGMQueueExt,
    history: History,
    stopped: watch::Receiver<bool>,
    lease: u64,
    attempts: i32,
}

impl User {
    async fn produce(self, nr: u64) {
        let mut next = nr * 1_000_000;
        while !*self.stopped.borrow() {
            next += 1;
            let name = if next % 3 == 0 { EXACT } else { WORK };
            let n = if next % 5 == 0 { 5 } else { 1 };
            let tags: Vec<u64> = (next..next + n).collect();
            next += n - 1;
            let op = self.history.invoked(json!({ "verb": "enqueue", "queue": name, "tags": tags }));
            let payloads: Vec<Payload> = tags.into_iter().map(payload).collect();
            let outcome = peer::send(&self.queue, name, &payloads).await;
            self.history.end(op, outcome, |ids| json!({ "ids": ids }));
            sleep(Duration::from_millis(self.lease * n / 40)).await;
        }
    }

    async fn consume(self, name: &'static str) {
        while !*self.stopped.borrow() {
            let op = self.history.invoked(json!({ "verb": "lease", "queue": name, "n": 1, "ms": self.lease }));
            let outcome = self.queue.read::<Payload>(name, (self.lease / 1000) as i32).await;
            let said = |read: &Option<Message<Payload>>| {
                let got: Vec<_> = read.iter().map(|one| (one.msg_id, one.read_ct, tag(&one.message.text))).collect();
                json!({ "got": got })
            };
            match self.history.end(op, outcome, said).flatten() {
                Some(message) => self.work(&message, name).await,
                None => sleep(IDLE).await,
            }
        }
    }

    async fn work(&self, message: &Message<Payload>, name: &str) {
        let (number, attempt) = (tag(&message.message.text), message.read_ct);
        let (lasts, fails) = match number % 100 {
            0..3 => (10, true),
            3..9 => (10, attempt == 1),
            9..15 if attempt == 1 => (self.lease * 3 / 2, number % 100 >= 12),
            9..15 if attempt == 2 => (self.lease * 7 / 10, false),
            15..25 => (self.lease * 3 / 5, false),
            _ => (5 + number % 25, false),
        };
        if lasts > self.lease && number % 2 == 0 {
            sleep(Duration::from_millis(lasts / 2)).await;
            let op = self.call("extend", name, message, self.lease);
            let extended = self.queue.set_vt::<Payload>(name, message.msg_id, (self.lease / 1000) as i32).await;
            self.history.end(op, extended, |_| json!({}));
            sleep(Duration::from_millis(lasts / 2)).await;
        } else {
            sleep(Duration::from_millis(lasts)).await;
        }
        if name == EXACT {
            let op = self.call("ack_in", name, message, 0);
            let outcome = self.delete_with_effect(message, number, op).await;
            self.history.end(op, outcome, |deleted| lost(*deleted, message.msg_id));
        } else if !fails {
            let op = self.call("ack", name, message, 0);
            let deleted = self.queue.delete(name, message.msg_id).await;
            self.history.end(op, deleted, |deleted| lost(*deleted, message.msg_id));
        } else if attempt >= self.attempts {
            let op = self.call("bury", name, message, 0);
            let archived = self.queue.archive(name, message.msg_id).await;
            self.history.end(op, archived, |archived| lost(*archived, message.msg_id));
        }
        // Leaves a failed message, which is read again after its visibility timeout.
    }

    fn call(&self, verb: &str, queue: &str, message: &Message<Payload>, ms: u64) -> u64 {
        self.history
            .invoked(json!({ "verb": verb, "queue": queue, "named": [[message.msg_id, message.read_ct]], "ms": ms }))
    }

    /// Writes the effect and deletes the message in one transaction. The transaction rolls back if
    /// the message is gone.
    async fn delete_with_effect(&self, message: &Message<Payload>, number: u64, op: u64) -> Result<bool, Failure> {
        let mut transaction = self.pool.begin().await?;
        let enter = sqlx::query("insert into ledger (tag, op) values ($1, $2)");
        let by = format!("{}:{op}", self.process);
        enter.bind(number as i64).bind(by).execute(&mut *transaction).await?;
        if !self.queue.delete_with_cxn(EXACT, message.msg_id, &mut *transaction).await? {
            transaction.rollback().await?;
            return Ok(false);
        }
        transaction.commit().await?;
        Ok(true)
    }
}

fn lost(is_done: bool, id: i64) -> serde_json::Value {
    if is_done { json!({}) } else { json!({ "lost": [id] }) }
}
