use std::time::Instant;

use tokio_postgres::Client;

use super::{Claim, Column, Kind, Turn, Way};
use crate::{Failure, ground::Ground, report::number};

pub const COLUMNS: &[Column] = &[
    ("to be rid of a row", number::time),
    ("bytes left", number::bytes),
    ("the next look at what is due", number::time),
];

/// The turn removes nine tenths of the rows; the remaining rows are due last.
const TABLES: &str = "create table deleted (id bigint, at bigint, value text);
    create index on deleted (at);
    create table dropped (id bigint, at bigint, value text) partition by range (at);
    create index on dropped (at);";

pub const EMPTIED: &[Claim] = &[Claim {
    name: "partitions dropped, or rows deleted, under a held snapshot",
    says: "While a snapshot is held nothing that was deleted can be cleaned up; a partition that is dropped is gone at once.",
    tables: TABLES,
    ways: &[Way { name: "rows deleted", sql: DELETE }, Way { name: "partitions dropped", sql: DROP }],
    kind: Kind::Emptied,
}];

const DELETE: &str = "delete from deleted where at < 9";
const DROP: &str =
    "drop table dropped_0, dropped_1, dropped_2, dropped_3, dropped_4, dropped_5, dropped_6, dropped_7, dropped_8";

/// Fills the table while another session holds a snapshot, empties it with the statement, and
/// searches for the next due row.
pub async fn turn(client: &Client, ground: &Ground, database: &str, sql: &str, rows: u32) -> Result<Turn, Failure> {
    let table = if sql == DROP { "dropped" } else { "deleted" };
    if table == "dropped" {
        for part in 0..10 {
            let part = format!(
                "create table if not exists dropped_{part} partition of dropped for values from ({part}) to ({part} + 1)"
            );
            client.batch_execute(&part).await?;
        }
    }
    client.batch_execute(&format!("truncate {table}")).await?;
    let holder = ground.session(database).await?;
    holder.batch_execute("begin isolation level repeatable read; select 1").await?;
    let fill = format!(
        "insert into {table} select k, k * 10 / {rows}, repeat(md5(k::text), 3) from generate_series(0, {rows} - 1) as k; analyze {table}"
    );
    client.batch_execute(&fill).await?;
    let began = Instant::now();
    client.batch_execute(sql).await?;
    let gone = began.elapsed().as_secs_f64() * 1e6 / (0.9 * f64::from(rows));
    let size = "select sum(pg_total_relation_size(relid))::float8 from pg_partition_tree($1::text::regclass)";
    // Adds up the sizes of partitions; a plain table has none.
    let size = match table {
        "dropped" => client.query_one(size, &[&table]).await?,
        _ => client.query_one("select pg_total_relation_size($1::text::regclass)::float8", &[&table]).await?,
    };
    let next = client.prepare(&format!("select id from {table} order by at limit 1")).await?;
    let began = Instant::now();
    client.query_one(&next, &[]).await?;
    let look = began.elapsed().as_secs_f64() * 1e6;
    holder.batch_execute("commit").await?;
    Ok(vec![gone, size.get(0), look])
}
