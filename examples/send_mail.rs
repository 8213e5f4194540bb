//! At least once: each message is leased, handled, and acknowledged or given back for another attempt.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use trunkline::{Db, Json, Result, Settings, Wait};

#[derive(Debug, Serialize, Deserialize)]
struct Mail {
    to: String,
    text: String,
}

/// Sends what is in the queue, until nothing is; returns who got a mail.
pub async fn run(url: &str) -> Result<Vec<String>> {
    let db = Db::connect(url).await?;
    db.migrate().await?;
    db.create_queue("mails", &Settings::new("jsonb").max_attempts(3)).await?;
    let mails = db.queue::<Json<Mail>>("mails").await?;

    for to in ["ada@example.org", "nobody", "grace@example.org"] {
        mails.enqueue(Json(Mail { to: to.into(), text: "hello".into() })).await?;
    }

    let mut sent = Vec::new();
    let mut consumer = mails.consumer(Wait::default());
    while mails.stats().await?.messages > 0 {
        for message in consumer.at_least_once(10).await? {
            match send(&message.payload.0) {
                Ok(()) => mails.ack([&message]).await?,
                Err(error) => mails.retry([&message], Duration::from_millis(10), error).await?,
            }
            sent.extend(message.payload.0.to.contains('@').then_some(message.payload.0.to));
        }
    }

    let dead = mails.dead_letters(0, 10).await?;
    assert_eq!(dead[0].payload.0.to, "nobody");
    assert_eq!((dead[0].attempt, dead[0].error.as_str()), (3, "no such address"));
    Ok(sent)
}

fn send(mail: &Mail) -> Result<(), &'static str> {
    if mail.to.contains('@') && !mail.text.is_empty() { Ok(()) } else { Err("no such address") }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = trunkline_embedded::Cluster::temporary().start()?;
    let sent = run(&cluster.url("postgres")).await?;
    assert_eq!(sent, ["ada@example.org", "grace@example.org"]);
    println!("sent to {sent:?}");
    Ok(())
}
