//! A worker runs a function for every message. It retries messages that fail, and makes hopeless
//! ones dead letters.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use trunkline::{Db, Failure, Json, Message, Result, RetryPolicy, Settings, Worker};

#[derive(Debug, Serialize, Deserialize)]
struct Mail {
    to: String,
    text: String,
}

/// Sends all mails in the queue. Returns the numbers of sent and of retried mails, and the dead
/// letters.
pub async fn run(url: &str) -> Result<(u64, u64, Vec<String>)> {
    let db = Db::connect(url).await?;
    db.migrate().await?;
    db.create_queue("mails", &Settings::of::<Json<Mail>>().max_attempts(5)).await?;
    let mails = db.queue::<Json<Mail>>("mails").await?;

    for to in ["ada@example.org", "grace", "busy@example.org"] {
        mails.enqueue(Json(Mail { to: to.into(), text: "hello".into() })).await?;
    }

    let sent_all = {
        let mails = mails.clone();
        async move {
            while mails.stats().await.is_ok_and(|stats| stats.messages > 0) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        } // a long-running program waits for a signal instead: tokio::signal::ctrl_c()
    };
    let worker = Worker::new(mails.clone(), send)
        .concurrency(16)
        .timeout(Duration::from_secs(60))
        .retry(RetryPolicy::exponential(Duration::from_millis(10), Duration::from_secs(3600)));
    let summary = worker.run(sent_all).await?;

    let dead = mails.dead_letters(0, 10).await?;
    Ok((summary.done, summary.retried, dead.into_iter().map(|dead| dead.payload.0.to + ": " + &dead.error).collect()))
}

async fn send(mail: Message<Json<Mail>>) -> Result<(), Failure> {
    match mail.payload.to.split_once('@') {
        None => Err(Failure::dead("no such address")),
        Some(("busy", _)) if mail.attempts() < 3 => Err(Failure::retry("the server is busy")),
        Some(_) => Ok(()),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = trunkline_embedded::Cluster::temporary().start()?;
    let outcome = run(&cluster.url("postgres")).await?;
    assert_eq!(outcome, (2, 2, vec!["grace: no such address".to_owned()]));
    println!("{outcome:?}");
    Ok(())
}
