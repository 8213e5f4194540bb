//! Measures how fast a queue's messages reach a broker. Compares the relay with the broker's own
//! load tool, and with a plain loop of the client library and `delete … returning`. Also measures
//! the time from a message's commit to the broker's confirmation.
//!
//! ```sh
//! PATH=$PATH:$(.ci/brokers) cargo run --release -p trunkline-relay \
//!     --features kafka,nats,rabbitmq,redis --example rates -- all >crates/relay/results.json
//! ```
//!
//! Runs one broker at a time, next to one PostgreSQL. Both are private and keep their default
//! durability.
#![allow(missing_docs)]

#[path = "../tests/all/brokers/mod.rs"]
#[allow(dead_code)]
mod brokers;
#[path = "../../../lab/bench/src/fsyncs.rs"]
mod fsyncs;
mod latency;
mod own_tool;
mod place;
mod plain;
mod results;
mod throughput;

use std::{env, error::Error, time::Duration};

use trunkline::Db;
use trunkline_embedded::{Binaries, Cluster};

use self::{
    brokers::{Broker, Kind},
    place::Place,
    results::{Measured, Results, said},
};

/// The allocator that the program `trunkline` uses in builds with relays. The plain loop uses the
/// same allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// The number of rounds of each measurement, so that the spread is visible.
const TIMES: usize = 3;

const BYTES: usize = 100;

#[tokio::main(flavor = "multi_thread")]
async fn main() -> Outcome<()> {
    let mut arguments = env::args().skip(1);
    let kinds = match arguments.next().as_deref() {
        Some("kafka") => vec![Kind::Kafka],
        Some("rabbitmq") => vec![Kind::Rabbitmq],
        Some("nats") => vec![Kind::Nats],
        Some("redis") => vec![Kind::Redis],
        Some("all") => vec![Kind::Kafka, Kind::Redis, Kind::Nats, Kind::Rabbitmq],
        _ => return Err("usage: rates kafka|rabbitmq|nats|redis|all [MESSAGES [relay]]".into()),
    };
    let messages: usize = arguments.next().map_or(Ok(300_000), |text| text.parse())?;
    // Runs only the relay, for a profiler.
    let alone = arguments.next().is_some_and(|word| word == "relay");
    // Runs on a worker thread, because the main thread is slower.
    tokio::spawn(async move {
        let mut results = Results {
            command:
                "cargo run --release -p trunkline-relay --features kafka,nats,rabbitmq,redis --example rates -- all"
                    .into(),
            commit: said("git", &["rev-parse", "--short", "HEAD"]),
            cores: std::thread::available_parallelism()?.get(),
            postgres: Binaries::find()?.version().to_owned(),
            messages,
            bytes: BYTES,
            brokers: Vec::new(),
        };
        for kind in kinds {
            results.brokers.extend(measure(kind, messages, alone).await?);
        }
        if !alone {
            println!("{}", serde_json::to_string_pretty(&results)?);
        }
        Ok(())
    })
    .await?
}

async fn measure(kind: Kind, messages: usize, alone: bool) -> Outcome<Option<Measured>> {
    let broker = Broker::start(kind);
    let cluster = Cluster::temporary().start()?;
    let url = cluster.url("postgres");
    let db = Db::connect(&url).await?;
    db.migrate().await?;
    let place = Place::new(kind, broker.direct());
    let (mut relay, mut plain, mut own_tool, mut p50, mut p99) = (vec![], vec![], Ok(vec![]), vec![], vec![]);
    let fsyncs = fsyncs::per_second(&cluster.data_dir(), Duration::from_secs(1))?;
    for time in 0..TIMES {
        relay.push(throughput::of_relay(&db, &place, &format!("relay{time}"), messages).await?);
        if alone {
            eprintln!("{kind:?}: relay {:.0}/s", relay[time]);
            continue;
        }
        plain.push(plain::rate(&url, &place, &format!("plain{time}"), messages).await?);
        own_tool = match (own_tool, own_tool::rate(&place, &format!("tool{time}"), messages).await) {
            (Ok(mut rates), Ok(rate)) => {
                rates.push(rate);
                Ok(rates)
            }
            (Ok(_), Err(why)) => Err(why.to_string()),
            (Err(why), _) => Err(why),
        };
        let (middle, late) = latency::at(&db, &place, &format!("latency{time}"), 100, Duration::from_secs(10)).await?;
        p50.push(middle);
        p99.push(late);
        eprintln!(
            "{kind:?}: relay {:.0}/s, plain loop {:.0}/s, the broker's own tool {own_tool:.0?}, commit to broker p50 {middle:.2} ms, p99 {late:.2} ms",
            relay[time], plain[time],
        );
    }
    let broker = place::version(kind);
    Ok((!alone).then_some(Measured { broker, fsyncs, relay, plain, own_tool, p50, p99 }))
}
