//! How fast a relay is: `rates OUT-ADDRESS IN-ADDRESS [MESSAGES]`, with the database of `DATABASE_URL`, or a private one with default durability.
//!
//! Prints what the sink takes from memory, what the relay takes out of the queue, what a plain loop of `delete … returning` and the same client takes, what the relay brings in, and the time from
//! a commit to the broker at 100 messages a second. The broker's stream exists, and is of this run alone.
#![allow(missing_docs)]

use std::{
    collections::HashMap,
    error::Error,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use bytes::Bytes;
use hdrhistogram::Histogram;
use tokio_util::sync::CancellationToken;
use trunkline::{Db, Queue, Settings};
use trunkline_embedded::Cluster;
use trunkline_relay::{Inward, Outcome, Outgoing, Raw, Relay, Sink};

type Done<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

const BODY: usize = 100;

fn main() -> Done {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async { tokio::spawn(measure()).await? })
}

async fn measure() -> Done {
    let mut args = std::env::args().skip(1).collect::<Vec<_>>().into_iter();
    let (out, from) = (args.next().ok_or("an address to send to")?, args.next().ok_or("an address to read from")?);
    let messages: usize = args.next().map_or(Ok(300_000), |count| count.parse())?;
    let mut private = None;
    let url = match std::env::var("DATABASE_URL") {
        Ok(url) => url,
        Err(_) => private.insert(Cluster::temporary().start()?).url("postgres"),
    };
    let db = Db::connect(&url).await?;
    db.migrate().await?;
    for name in ["rates", "rates_in"] {
        let _ = db.drop_queue(name).await; // of a run before
        db.create_queue(name, &Settings::of::<String>().max_batch(1000)).await?;
    }
    let queue: Queue<Raw> = db.queue("rates").await?;
    let (sink, route) = trunkline_relay::sink(&out).await?;
    let to: Arc<str> = route.fixed().ok_or("an address without places")?.into();
    println!("broker {}, {messages} messages of {BODY} bytes", sink.broker());

    let began = Instant::now();
    from_memory(&sink, &to, messages).await?;
    told("sink alone, from memory", messages, began);

    fill(&queue, messages).await?;
    let began = Instant::now();
    drain(&queue, &sink, &route, messages).await?;
    told("relay out of the queue", messages, began);

    let plain = messages / 3;
    let began = plain_loop(&url, &sink, &to, plain).await?;
    told("plain loop, delete returning 1,000", plain, began);

    let inward: Queue<Raw> = db.queue("rates_in").await?;
    let began = Instant::now();
    bring_in(&inward, &from, messages).await?;
    told("relay into the queue", messages, began);
    latency(&queue, &sink, &route, &from).await
}

fn told(what: &str, messages: usize, began: Instant) {
    println!("{what}: {:.0}/s", messages as f64 / began.elapsed().as_secs_f64());
}

fn body() -> Bytes {
    vec![b'x'; BODY].into()
}

async fn from_memory(sink: &Arc<dyn Sink>, to: &Arc<str>, messages: usize) -> Done {
    let mut batches = Vec::new();
    for task in 0..8 {
        let (sink, to) = (sink.clone(), to.clone());
        batches.push(tokio::spawn(async move {
            for nr in 0..messages.div_ceil(8 * 1000) {
                let id = |k| format!("memory/{}/{task}/{nr}/{k}", std::process::id());
                let batch: Vec<_> = (0..1000).map(|k| Outgoing::new(id(k), to.clone(), body())).collect();
                let outcomes = sink.produce(&batch).await;
                if let Some(other) = outcomes.iter().find(|outcome| **outcome != Outcome::Confirmed) {
                    return Err(format!("{other:?}"));
                }
            }
            Ok(())
        }));
    }
    for batch in batches {
        batch.await??;
    }
    Ok(())
}

async fn fill(queue: &Queue<Raw>, messages: usize) -> Done {
    for _ in 0..messages / 1000 {
        queue.enqueue_many((0..1000).map(|_| Raw(body()))).await?;
    }
    Ok(())
}

async fn drain(queue: &Queue<Raw>, sink: &Arc<dyn Sink>, route: &trunkline_relay::Template, messages: usize) -> Done {
    let relay = Relay::new(queue.clone(), sink.clone()).route(route.clone());
    let (progress, stop) = (relay.progress(), CancellationToken::new());
    let running = tokio::spawn(relay.run(stop.clone().cancelled_owned()));
    while (progress.confirmed() as usize) < messages / 1000 * 1000 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stop.cancel();
    running.await??;
    Ok(())
}

/// What one writes by hand: rows of a table, a thousand in a transaction, confirmed by the broker, committed.
async fn plain_loop(url: &str, sink: &Arc<dyn Sink>, to: &Arc<str>, messages: usize) -> Done<Instant> {
    let (mut client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute("create table plain (id bigserial primary key, body bytea not null)").await?;
    let fill = "insert into plain (body) select convert_to(repeat('x', 100), 'UTF8') from generate_series(1, $1)";
    client.execute(fill, &[&(messages as i64)]).await?;
    let began = Instant::now();
    loop {
        let transaction = client.transaction().await?;
        let take = "delete from plain where id in (select id from plain order by id limit 1000 for update skip locked) returning id, body";
        let rows = transaction.query(take, &[]).await?;
        if rows.is_empty() {
            return Ok(began);
        }
        let message = |row: &tokio_postgres::Row| {
            let (id, body): (i64, Vec<u8>) = (row.get(0), row.get(1));
            Outgoing::new(format!("plain/{}/{id}", std::process::id()), to.clone(), body)
        };
        let batch: Vec<_> = rows.iter().map(message).collect();
        sink.produce(&batch).await;
        transaction.commit().await?;
    }
}

async fn bring_in(queue: &Queue<Raw>, from: &str, messages: usize) -> Done {
    let relay = Inward::new(trunkline_relay::source(from).await?, queue.clone());
    let (progress, stop) = (relay.progress(), CancellationToken::new());
    let running = tokio::spawn(relay.run(stop.clone().cancelled_owned()));
    while (progress.confirmed() as usize) < messages {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stop.cancel();
    running.await??;
    Ok(())
}

/// From the moment when a commit is known to the moment when a reader of the broker has the message.
async fn latency(queue: &Queue<Raw>, sink: &Arc<dyn Sink>, route: &trunkline_relay::Template, from: &str) -> Done {
    const MESSAGES: usize = 1000;
    let mut source = trunkline_relay::source(from).await?;
    let mut after = None::<String>;
    loop {
        let read = source.read(after.as_deref(), 1000).await?;
        let Some(last) = read.last() else { break };
        after = Some(last.position.clone());
    }
    let relay = Relay::new(queue.clone(), sink.clone()).route(route.clone());
    let stop = CancellationToken::new();
    let running = tokio::spawn(relay.run(stop.clone().cancelled_owned()));
    let arrived = Arc::new(Mutex::new(HashMap::new()));
    let noted = arrived.clone();
    let reader = tokio::spawn(async move {
        let mut seen = 0;
        while seen < MESSAGES {
            let Ok(read) = source.read(after.as_deref(), 1000).await else { continue };
            let now = Instant::now();
            for message in read {
                seen += 1;
                noted.lock().expect("not poisoned").insert(String::from_utf8_lossy(&message.body).into_owned(), now);
                after = Some(message.position);
            }
        }
    });
    let (mut tick, mut committed) = (tokio::time::interval(Duration::from_millis(10)), Vec::new());
    for nr in 0..MESSAGES {
        tick.tick().await;
        let body = format!("{nr:0100}");
        queue.enqueue(Raw(body.clone().into())).await?;
        committed.push((body, Instant::now()));
    }
    reader.await?;
    stop.cancel();
    running.await??;
    let mut times = Histogram::<u64>::new(3)?;
    let arrived = arrived.lock().expect("not poisoned");
    for (body, at) in committed.iter().skip(100) {
        times.record(arrived[body].saturating_duration_since(*at).as_micros() as u64)?;
    }
    let at = |quantile: f64| times.value_at_quantile(quantile) as f64 / 1000.0;
    println!("from commit to broker at 100/s: p50 {:.2} ms, p90 {:.2} ms, p99 {:.2} ms", at(0.5), at(0.9), at(0.99));
    Ok(())
}
