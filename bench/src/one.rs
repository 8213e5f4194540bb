//! One caller, one message at a time, awaited; and a plain prepared insert of the same bytes by the same driver.

use std::time::{Duration, Instant};

use tokio_postgres::NoTls;

use crate::{Failure, Figures, Ground, percentile};

const TIME: Duration = Duration::from_secs(3);

fn figures(mut latencies: Vec<f64>, took: f64) -> Figures {
    vec![
        ("enqueued/s", latencies.len() as f64 / took),
        ("p50 us", percentile(&mut latencies, 0.5)),
        ("p99 us", percentile(&mut latencies, 0.99)),
    ]
}

pub async fn run(ground: Ground) -> Result<Figures, Failure> {
    let queue = ground.queue("one").await?;
    let (began, mut latencies, payload) = (Instant::now(), Vec::new(), vec![7; 100]);
    while began.elapsed() < TIME {
        let call = Instant::now();
        queue.enqueue(&payload).await?;
        latencies.push(call.elapsed().as_secs_f64() * 1e6);
    }
    Ok(figures(latencies, began.elapsed().as_secs_f64()))
}

pub async fn plain(ground: Ground) -> Result<Figures, Failure> {
    let (client, connection) = tokio_postgres::connect(&ground.url, NoTls).await?;
    tokio::spawn(connection);
    let table = "drop table if exists plain; create table plain (id bigserial primary key, at timestamptz default now(), payload bytea)";
    client.batch_execute(table).await?;
    let insert = client.prepare("insert into plain (payload) values ($1) returning id").await?;
    let (began, mut latencies, payload) = (Instant::now(), Vec::new(), vec![7_u8; 100]);
    while began.elapsed() < TIME {
        let call = Instant::now();
        client.query(&insert, &[&payload]).await?;
        latencies.push(call.elapsed().as_secs_f64() * 1e6);
    }
    Ok(figures(latencies, began.elapsed().as_secs_f64()))
}
