//! How fast a queue goes to a broker, beside the broker's own load tool and beside a plain loop of client library and `delete … returning`; and how long a message
//! takes from its commit to the broker's confirmation.
//!
//! ```sh
//! PATH=$PATH:$(.ci/brokers) cargo run --release -p trunkline-relay --features kafka,nats,rabbitmq,redis --example rates -- kafka
//! ```
//!
//! One broker, one PostgreSQL, both private, with their default durability.
#![allow(missing_docs)]

#[path = "../tests/all/brokers/mod.rs"]
#[allow(dead_code)]
mod brokers;
mod latency;
mod own_tool;
mod place;
mod plain;
#[path = "../../tests/all/required.rs"]
#[allow(dead_code)]
mod required;
mod throughput;

use std::{env, error::Error, time::Duration};

use trunkline::Db;
use trunkline_embedded::Cluster;

use self::{
    brokers::{Broker, Kind},
    place::Place,
};

pub type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Of each, so that its spread can be seen.
const TIMES: usize = 3;

#[tokio::main(flavor = "multi_thread")]
async fn main() -> Outcome<()> {
    let mut arguments = env::args().skip(1);
    let kind = match arguments.next().as_deref() {
        Some("kafka") => Kind::Kafka,
        Some("rabbitmq") => Kind::Rabbitmq,
        Some("nats") => Kind::Nats,
        Some("redis") => Kind::Redis,
        _ => return Err("usage: rates kafka|rabbitmq|nats|redis [MESSAGES]".into()),
    };
    let messages: usize = arguments.next().map_or(Ok(300_000), |text| text.parse())?;
    // On a worker's thread: the one of `main` is slower.
    tokio::spawn(measure(kind, messages)).await?
}

async fn measure(kind: Kind, messages: usize) -> Outcome<()> {
    let broker = Broker::start(kind).ok_or("no such broker here")?;
    let cluster = Cluster::temporary().start()?;
    let url = cluster.url("postgres");
    let db = Db::connect(&url).await?;
    db.migrate().await?;
    let place = Place::new(kind, broker.direct());
    println!("{kind:?}, {messages} messages of 100 bytes");
    for time in 0..TIMES {
        let tool = own_tool::rate(&place, &format!("tool{time}"), messages).await;
        let relay = throughput::of_relay(&db, &place, &format!("relay{time}"), messages).await?;
        let plain = plain::rate(&url, &place, &format!("plain{time}"), messages).await?;
        let tool = tool.map_or_else(|why| format!("none ({why})"), |rate| format!("{rate:.0}/s"));
        println!("relay {relay:.0}/s, plain loop {plain:.0}/s, the broker's own tool {tool}");
    }
    for time in 0..TIMES {
        println!("{}", latency::at(&db, &place, &format!("latency{time}"), 100, Duration::from_secs(10)).await?);
    }
    Ok(())
}
