use std::time::Instant;

use futures_util::future::try_join_all;
use tokio_postgres::{Client, types::ToSql};

use super::{Claim, Column, Kind, Turn, Way};
use crate::{Failure, report::number};

pub const COLUMNS: &[Column] = &[("a statement", number::time)];

/// The number of statements that are sent before their answers are awaited.
const TOGETHER: u32 = 100;

pub const EACH: &[Claim] = &[
    Claim {
        name: "explicit value or default",
        says: "hasql-queue inserts an explicit `0` where the column has `default 0`, and says that this is a few percent faster.",
        tables: "create table payload (id bigint, attempts int not null default 0, state int not null default 1, value text)",
        ways: &[
            Way { name: "default", sql: "insert into payload (id, value) values ($1, 'a value')" },
            Way {
                name: "explicit",
                sql: "insert into payload (id, attempts, state, value) values ($1, 0, 1, 'a value')",
            },
        ],
        kind: Kind::Each,
    },
    Claim {
        name: "sequence or timestamp",
        says: "hasql-queue orders by an int8 from a sequence, because that is said to be faster to make than a timestamp.",
        tables: "create sequence position;
            create table by_sequence (id bigint, at bigint not null default nextval('position'));
            create index on by_sequence (at);
            create table by_time (id bigint, at timestamptz not null default clock_timestamp());
            create index on by_time (at);
            create table by_transaction (id bigint, at timestamptz not null default now());
            create index on by_transaction (at);",
        ways: &[
            Way { name: "int8 from a sequence", sql: "insert into by_sequence (id) values ($1)" },
            Way { name: "timestamptz, `clock_timestamp()`", sql: "insert into by_time (id) values ($1)" },
            Way { name: "timestamptz, `now()`", sql: "insert into by_transaction (id) values ($1)" },
        ],
        kind: Kind::Each,
    },
    Claim {
        name: "statement without parameters",
        says: "A prepared statement without parameters is said to be faster, because its plan is kept from its first use on.",
        tables: "create table due (id bigint, at bigint, state text);
            insert into due select k, k, 'enqueued' from generate_series(1, 20000) as k;
            create index on due (at) where state = 'enqueued';
            analyze due;",
        ways: &[
            Way { name: "no parameter", sql: "select id from due where state = 'enqueued' order by at limit 1" },
            Way {
                name: "a parameter",
                sql: "select id from due where state = 'enqueued' and at > $1 order by at limit 1",
            },
            Way {
                name: "a parameter in `limit`",
                sql: "select id from due where state = 'enqueued' order by at limit $1",
            },
        ],
        kind: Kind::Each,
    },
];

/// Returns the time per statement in microseconds. Rolls the writes back, so that the next turn
/// does not find them.
pub async fn turn(client: &Client, sql: &str, rows: u32) -> Result<Turn, Failure> {
    let statement = client.prepare(sql).await?;
    let takes = !statement.params().is_empty();
    client.batch_execute("begin").await?;
    let began = Instant::now();
    for first in (0..rows).step_by(TOGETHER as usize) {
        let one = async |row: u32| {
            let id = i64::from(row % 1000 + 1);
            let parameters: &[&(dyn ToSql + Sync)] = if takes { &[&id] } else { &[] };
            client.execute(&statement, parameters).await
        };
        try_join_all((first..rows.min(first + TOGETHER)).map(one)).await?;
    }
    let time = began.elapsed();
    client.batch_execute("rollback").await?;
    Ok(vec![time.as_secs_f64() * 1e6 / f64::from(rows)])
}
