//! One caller, one message at a time, awaited; and a plain prepared insert of the same bytes by the same driver.

use std::time::{Duration, Instant};

use tokio_postgres::NoTls;

use crate::{Failure, Figures, Ground, percentile};

const TABLE: &str = "drop table if exists plain;
    create table plain (id bigserial primary key, at timestamptz default now(), payload bytea)";
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

/// The same insert by pgbench, where the server comes with it: no figures otherwise.
pub async fn pgbench(ground: Ground) -> Result<Figures, Failure> {
    let (client, connection) = tokio_postgres::connect(&ground.url, NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute(TABLE).await?;
    let (programs, socket, port) = ground.place;
    let script = std::env::temp_dir().join(format!("trunkline-insert-{}.sql", std::process::id()));
    std::fs::write(&script, format!("insert into plain (payload) values ('\\x{}');\n", "07".repeat(100)))?;
    let mut run = std::process::Command::new(programs.join("pgbench"));
    run.args(["-n", "-M", "prepared", "-c", "1", "-T", "3", "-U", "trunkline", "-p", &port.to_string(), "-h"]);
    let ran = run.arg(socket).arg("-f").arg(&script).arg("postgres").output();
    std::fs::remove_file(script)?;
    let Ok(output) = ran else { return Ok(Vec::new()) };
    let text = String::from_utf8(output.stdout)?;
    let rate = text.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
    Ok(vec![("enqueued/s", rate.ok_or("pgbench did not say how fast it was")?)])
}

pub async fn plain(ground: Ground) -> Result<Figures, Failure> {
    let (client, connection) = tokio_postgres::connect(&ground.url, NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute(TABLE).await?;
    let insert = client.prepare("insert into plain (payload) values ($1) returning id").await?;
    let (began, mut latencies, payload) = (Instant::now(), Vec::new(), vec![7_u8; 100]);
    while began.elapsed() < TIME {
        let call = Instant::now();
        client.query(&insert, &[&payload]).await?;
        latencies.push(call.elapsed().as_secs_f64() * 1e6);
    }
    Ok(figures(latencies, began.elapsed().as_secs_f64()))
}

/// The plain insert once every ten milliseconds, as in `idle`: what the machine's own sleepiness costs.
pub async fn plain_idle(ground: Ground) -> Result<Figures, Failure> {
    let (client, connection) = tokio_postgres::connect(&ground.url, NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute(TABLE).await?;
    let insert = client.prepare("insert into plain (payload) values ($1) returning id").await?;
    let (mut latencies, payload) = (Vec::new(), vec![7_u8; 100]);
    let mut tick = tokio::time::interval(Duration::from_millis(10));
    for _ in 0..300 {
        tick.tick().await;
        let call = Instant::now();
        client.query(&insert, &[&payload]).await?;
        latencies.push(call.elapsed().as_secs_f64() * 1e6);
    }
    Ok(vec![("p50 us", percentile(&mut latencies, 0.5)), ("p99 us", percentile(&mut latencies, 0.99))])
}
