//! An alternative that hasql-queue rejected: messages are marked as dequeued in a partitioned
//! table, and a partition is dropped once all of its messages have been dequeued. The statements
//! and tables are taken from the commit of hasql-queue that contains this alternative.

use std::time::Instant;

use tokio_postgres::Client;

use super::{Claim, Column, Kind, Turn, Way};
use crate::{Failure, ground::Ground, report::number};

pub const COLUMNS: &[Column] =
    &[("to dequeue a message", number::time), ("bytes left", number::bytes), ("the next dequeue", number::time)];

/// The number of messages per dequeue.
const BATCH: i64 = 100;
/// The number of partitions of a filled table. All messages outside the last partition are
/// dequeued.
const PARTS: u32 = 10;

const TABLES: &str = "create type state_t as enum ('enqueued', 'dequeued', 'failed');
    create sequence modified_index;
    create table deleted (id bigint primary key, attempts int not null default 0, state state_t not null default 'enqueued',
        modified_at int8 not null default nextval('modified_index'), value text not null);
    create index on deleted (modified_at) where state = 'enqueued';
    create table marked (id bigint primary key, attempts int not null default 0, state state_t not null default 'enqueued',
        modified_at int8 not null default nextval('modified_index'), value text not null) partition by range (id);
    create index on marked (modified_at) where state = 'enqueued'";

const DELETE: &str = "delete from deleted where id in (select p.id from deleted p where p.state = 'enqueued'
    order by p.modified_at for update skip locked limit $1) returning value";
const MARK: &str =
    "update marked set state = 'dequeued' where id in (select p.id from marked p where p.state = 'enqueued'
    order by p.modified_at for update skip locked limit $1) returning value";

const WAYS: &[Way] = &[Way { name: "deleted", sql: DELETE }, Way { name: "marked, and partitions dropped", sql: MARK }];

pub const MARKED: &[Claim] = &[
    Claim {
        name: "marked and dropped, or deleted",
        says: "hasql-queue first marked messages as dequeued and dropped partitions, and found that \"slightly faster, much more complicated\" \
               than deleting. Dequeues of 100 messages; commits do not wait for the disk.",
        tables: TABLES,
        ways: WAYS,
        kind: Kind::Marked { held: false },
    },
    Claim {
        name: "marked and dropped, or deleted, under a held snapshot",
        says: "The same while another session holds a snapshot, which keeps every deleted and every marked row until its table is dropped.",
        tables: TABLES,
        ways: WAYS,
        kind: Kind::Marked { held: true },
    },
];

/// Dequeues all messages outside the last partition, perhaps while another session holds a
/// snapshot. Then dequeues once more.
pub async fn turn(
    client: &Client,
    ground: &Ground,
    database: &str,
    sql: &str,
    (rows, held): (u32, bool),
) -> Result<Turn, Failure> {
    let each = (rows / PARTS).max(1);
    let is_marked = sql == MARK;
    let table = if is_marked { "marked" } else { "deleted" };
    fill(client, table, each).await?;
    let holder = ground.session(database).await?;
    if held {
        holder.batch_execute("begin isolation level repeatable read; select 1").await?;
    }
    client.batch_execute("set synchronous_commit = off").await?;
    let dequeue = client.prepare(sql).await?;
    let began = Instant::now();
    let mut dequeued = 0;
    for part in 1..PARTS {
        while dequeued < part * each {
            let n = BATCH.min(i64::from(part * each - dequeued));
            let messages = client.query(&dequeue, &[&n]).await?.len();
            if messages != n as usize {
                return Err(format!("{messages} of {n} messages were dequeued").into());
            }
            dequeued += messages as u32;
        }
        if is_marked {
            drop_before(client, part).await?;
        }
    }
    let each_took = began.elapsed().as_secs_f64() * 1e6 / f64::from(dequeued);
    let size = if is_marked {
        "select sum(pg_total_relation_size(relid))::float8 from pg_partition_tree('marked')"
    } else {
        "select pg_total_relation_size('deleted')::float8"
    };
    let size = client.query_one(size, &[]).await?.get(0);
    let began = Instant::now();
    client.query(&dequeue, &[&BATCH]).await?;
    let next = began.elapsed().as_secs_f64() * 1e6;
    holder.batch_execute("rollback").await?;
    Ok(vec![each_took, size, next])
}

/// Empties the table and fills it with `each` messages per partition.
async fn fill(client: &Client, table: &str, each: u32) -> Result<(), Failure> {
    client.batch_execute(&format!("truncate {table}")).await?;
    if table == "marked" {
        for part in 0..PARTS {
            let (from, to) = (part * each, (part + 1) * each);
            let create = format!(
                "drop table if exists marked_{part}; create table marked_{part} partition of marked for values from ({from}) to ({to})"
            );
            client.batch_execute(&create).await?;
        }
    }
    let fill = format!(
        "insert into {table} (id, value) select k, repeat(md5(k::text), 3) from generate_series(0, {} - 1) as k; analyze {table}",
        PARTS * each
    );
    Ok(client.batch_execute(&fill).await?)
}

/// Drops the partition before this one, if all of its messages are dequeued and this partition has
/// messages.
async fn drop_before(client: &Client, part: u32) -> Result<(), Failure> {
    let (first, second) = (part - 1, part);
    let may = format!(
        "select not exists (select from marked_{first} where state = 'enqueued') and exists (select from marked_{second})"
    );
    match client.query_one(&may, &[]).await?.get(0) {
        true => Ok(client.batch_execute(&format!("drop table marked_{first}")).await?),
        false => Err(format!("partition {first} still has messages").into()),
    }
}
