//! The schema and the statements that hasql-queue publishes, two producers and two consumers, one message at a time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio_postgres::{Client, NoTls};

use crate::{Failure, Figures, Ground};

const TIME: Duration = Duration::from_secs(4);
const SEED: i32 = 20_000;

const SCHEMA: &str = "
drop table if exists payloads; drop type if exists state_t; drop sequence if exists modified_index;
create type state_t as enum ('enqueued', 'failed');
create sequence modified_index start 1;
create table payloads (
  id bigserial primary key, attempts int not null default 0, state state_t not null default 'enqueued',
  modified_at int8 not null default nextval('modified_index'), value bytea not null);
create index active_modified_at_idx on payloads using btree (modified_at) where (state = 'enqueued');";

const ENQUEUE: &str = "insert into payloads (attempts, value) values (0, $1)";
const DEQUEUE: &str = "delete from payloads where id = (
  select p1.id from payloads as p1 where p1.state = 'enqueued' order by p1.modified_at asc
  for update skip locked limit 1) returning value";

pub async fn run(ground: Ground) -> Result<Figures, Failure> {
    let admin = connect(&ground.url).await?;
    admin.batch_execute(SCHEMA).await?;
    admin
        .execute("insert into payloads (attempts, value) select 0, '\\x07' from generate_series(1, $1)", &[&SEED])
        .await?;
    admin.batch_execute("vacuum full analyze payloads").await?;
    let stop = Arc::new(AtomicBool::new(false));
    let (enqueued, dequeued) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut tasks = Vec::new();
    let began = Instant::now();
    for _ in 0..2 {
        let (client, stopped, count) = (connect(&ground.url).await?, stop.clone(), enqueued.clone());
        tasks.push(tokio::spawn(async move {
            let (enqueue, payload) = (client.prepare(ENQUEUE).await?, vec![7_u8; 100]);
            while !stopped.load(Ordering::Relaxed) {
                client.execute(&enqueue, &[&payload]).await?;
                count.fetch_add(1, Ordering::Relaxed);
            }
            Ok::<_, Failure>(())
        }));
        let (client, stopped, count) = (connect(&ground.url).await?, stop.clone(), dequeued.clone());
        tasks.push(tokio::spawn(async move {
            let dequeue = client.prepare(DEQUEUE).await?;
            while !stopped.load(Ordering::Relaxed) {
                count.fetch_add(client.query(&dequeue, &[]).await?.len(), Ordering::Relaxed);
            }
            Ok::<_, Failure>(())
        }));
    }
    tokio::time::sleep(TIME).await;
    stop.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await??;
    }
    let took = began.elapsed().as_secs_f64();
    let rate = |count: &AtomicUsize| count.load(Ordering::Relaxed) as f64 / took;
    Ok(vec![("enqueued/s", rate(&enqueued)), ("dequeued/s", rate(&dequeued))])
}

async fn connect(url: &str) -> Result<Client, Failure> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}
