//! Reads the rows that the tables contain at the end.

use serde::{Deserialize, Serialize};
use tokio_postgres::Client;

use crate::{plan, tag};

/// A waiting or leased message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    pub queue: String,
    pub id: i64,
    pub attempt: i32,
    pub tag: u64,
}

/// A dead letter or archived message, with its attempts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    pub queue: String,
    pub id: i64,
    pub attempt: i32,
    pub tag: u64,
    #[serde(default)]
    pub error: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub tag: u64,
    pub amount: i64,
    /// The name of the operation, which contains its number in the history of its process.
    pub op: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tables {
    pub waiting: Vec<Waiting>,
    pub dead: Vec<Kept>,
    pub archive: Vec<Kept>,
    pub ledger: Vec<Entry>,
    /// Lists the number of each account, its sum, and the number of its entries.
    pub accounts: Vec<(i32, i64, i64)>,
    /// The ticks that were made, each as its schedule and its second since 1970.
    #[serde(default)]
    pub ticks: Vec<(String, i64)>,
    /// The number of the processes' connections after the processes have ended.
    pub connections: i64,
    /// The number of locks at the same time.
    pub locks: i64,
}

impl Tables {
    pub async fn read(client: &Client) -> Result<Self, String> {
        let mut tables = Self::default();
        let failed = |error: tokio_postgres::Error| format!("cannot read the tables: {error}");
        for queue in plan::QUEUES {
            let text = "select id, attempt, payload, metadata ->> 'tag' from trunkline.messages($1)";
            for row in client.query(text, &[&queue]).await.map_err(failed)? {
                let tag = tag::of(row.get(2), row.get(3));
                tables.waiting.push(Waiting { queue: queue.to_owned(), id: row.get(0), attempt: row.get(1), tag });
            }
            for (table, archived) in [("dead", false), ("archive", true)] {
                let error = if archived { "''" } else { "error" };
                let text = format!(
                    "select id, attempt, payload, metadata ->> 'tag', {error} from trunkline.\"{table}_{queue}\" order by id"
                );
                for row in client.query(&text, &[]).await.map_err(failed)? {
                    let tag =
                        row.get::<_, Option<&str>>(2).map_or(tag::DAMAGED, |payload| tag::of(payload, row.get(3)));
                    let kept =
                        Kept { queue: queue.to_owned(), id: row.get(0), attempt: row.get(1), tag, error: row.get(4) };
                    if archived { &mut tables.archive } else { &mut tables.dead }.push(kept);
                }
            }
        }
        for row in client.query("select tag, amount, op from ledger", &[]).await.map_err(failed)? {
            let tag: i64 = row.get(0);
            tables.ledger.push(Entry { tag: tag.cast_unsigned(), amount: row.get(1), op: row.get(2) });
        }
        let text = "select nr, sum, entries from account order by nr";
        tables.accounts = client
            .query(text, &[])
            .await
            .map_err(failed)?
            .iter()
            .map(|row| (row.get(0), row.get(1), row.get(2)))
            .collect();
        let text = "select metadata ->> 'schedule', extract(epoch from (metadata ->> 'tick')::timestamptz)::bigint
                    from trunkline.messages($1)";
        let ticks = client.query(text, &[&plan::TICKS]).await.map_err(failed)?;
        tables.ticks = ticks.iter().map(|row| (row.get(0), row.get(1))).collect();
        let text =
            "select count(distinct a.pid), count(l.pid) from pg_stat_activity a left join pg_locks l on l.pid = a.pid
                    where a.usename = 'torture'";
        let row = client.query_one(text, &[]).await.map_err(failed)?;
        (tables.connections, tables.locks) = (row.get(0), row.get(1));
        Ok(tables)
    }
}
