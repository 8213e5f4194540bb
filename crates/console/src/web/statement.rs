//! The console's queries, none of which changes anything.

use std::{collections::BTreeMap, time::SystemTime};

use trunkline::{
    Db, Description, Result,
    postgres::{Params, Rows},
};

use super::sieve::{Sieve, kind, line};
use crate::{metrics::ask::alone, schema::Text};

macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!("../../sql/web/", $name, ".sql"))
    };
}
pub(super) use sql;

/// A message in any state: state, attempt, due or ended at, enqueued at, error, the start of the
/// payload, its length, metadata, priority, key.
pub type Message =
    (String, i32, SystemTime, SystemTime, Option<String>, String, i64, Option<String>, i32, Option<String>);

/// A line of a list: id, state, enqueued at, due at, attempt, error, the start of the payload, its
/// length, key.
pub type Line = (i64, String, SystemTime, SystemTime, i32, Option<String>, String, i64, Option<String>);

/// Dead letters with the same error: the error, their number, and the first and last time of death.
pub type Group = (String, i64, SystemTime, SystemTime);

/// A dead letter: id, died at, attempt, error, the start of the payload, its length, key.
pub type Letter = (i64, SystemTime, i32, String, String, i64, Option<String>);

/// An entry of the audit: id, time, user, role in Postgres, action, queue, description, number of
/// affected messages.
pub type Entry = (i64, SystemTime, String, String, String, Option<String>, String, i64);

/// A relay: its state (`works` or `silent`), name, queue, and direction with the broker; the
/// numbers of messages that arrived, were refused and are held; the lag; the last error and its
/// time; and the time of the last report.
pub type Relay = (String, String, String, String, i64, Vec<i64>, Option<i64>, String, Option<SystemTime>, SystemTime);

/// A connected program: its name and its number of sessions.
pub type Program = (String, i64);

/// Runs a statement without placeholders.
pub async fn ask<P: Params, R: Rows>(db: &Db, text: &str, params: P) -> Result<R> {
    Text::of(db, text).run(db, params).await
}

pub async fn programs(db: &Db) -> Result<Vec<Program>> {
    ask(db, sql!("programs"), ()).await
}

/// Numbers by queue other than the counts: failed messages per second, the number of schedules, and
/// their next tick. The maps are empty if the role may not read them.
#[derive(Debug, Default)]
pub struct Besides {
    pub failing: BTreeMap<String, f64>,
    pub schedules: BTreeMap<String, (i64, Option<SystemTime>)>,
    /// True if this role may share the last hour with other consoles.
    pub may_keep_history: bool,
}

/// Returns whether this role may read the workers' reports, read the schedules and store the
/// history. The last value is true if the server is a standby, which has no reports.
pub async fn readable(db: &Db) -> Result<(bool, bool, bool, bool)> {
    ask(db, sql!("readable"), ()).await
}

pub async fn besides(db: &Db) -> Result<Besides> {
    let (reports, schedules, may_keep_history, is_standby) = readable(db).await?;
    let mut all = Besides { may_keep_history: may_keep_history && !is_standby, ..Besides::default() };
    if reports && !is_standby {
        let told: Vec<(String, f64)> = ask(db, sql!("failing"), ()).await?;
        all.failing = told.into_iter().collect();
    }
    if schedules {
        let told: Vec<(String, i64, Option<SystemTime>)> = ask(db, sql!("scheduled"), ()).await?;
        all.schedules = told.into_iter().map(|(queue, count, next)| (queue, (count, next))).collect();
    }
    Ok(all)
}

pub async fn message(db: &Db, queue: &str, id: i64) -> Result<Option<Message>> {
    ask(db, sql!("message"), (queue, id)).await
}

/// Returns whether this role may write the audit, which every action requires. The second value is
/// true if the server is a standby, where no action is possible.
pub async fn may_act(db: &Db) -> Result<(bool, bool)> {
    ask(db, sql!("may_act"), ()).await
}

pub async fn schedule_queue(db: &Db, schedule: &str) -> Result<Option<String>> {
    let queue: Option<(String,)> = ask(db, sql!("schedule_queue"), (schedule,)).await?;
    Ok(queue.map(|(queue,)| queue))
}

pub async fn entries(db: &Db, before: i64) -> Result<Vec<Entry>> {
    ask(db, sql!("entries"), (before,)).await
}

pub async fn relays(db: &Db) -> Result<Vec<Relay>> {
    ask(db, sql!("relays"), ()).await
}

pub async fn groups(db: &Db, queue: &str, which: &Sieve) -> Result<Vec<Group>> {
    let text = Text::of(db, sql!("groups")).with("line", &line("d.error")).with("kind", &kind("l.line"));
    let text = text.with("conditions", &which.conditions("$1")).with_tables(queue);
    alone(db, text, (which.values(),), MOST).await
}

pub async fn letters(db: &Db, queue: &Description, which: &Sieve, after: i64) -> Result<Vec<Letter>> {
    let text = Text::of(db, sql!("letters")).with("conditions", &which.conditions("$1")).with_tables(&queue.name);
    alone(db, text, (which.values(), after, queue.partitions > 0), MOST).await
}

/// Returns the actions that this role may not perform, in one queue or in all queues.
pub async fn refused(db: &Db, queue: Option<&str>) -> Result<Vec<String>> {
    let (refused,): (Vec<String>,) = ask(db, sql!("rights"), (queue,)).await?;
    Ok(refused)
}

/// The server's time limit for a statement that reads many rows. A page with such a statement uses
/// a separate connection, so that no other page waits for the statement.
pub const MOST: &str = "10s";
/// The number of lines of a page, which is also the limit of the statements.
pub const PAGE: usize = 50;
/// The maximum number of messages that a page searches.
pub const EXAMINED: usize = 5_000;

/// Returns a page of messages by id, and the id after which the next page starts, if there are
/// more.
pub async fn messages(db: &Db, queue: &Description, find: &Find) -> Result<(Vec<Line>, Option<i64>)> {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let (key, metadata, state) = (given(&find.key), given(&find.metadata), given(&find.state));
    let (from, until) = (given(&find.from), given(&find.until));
    let is_any = [&key, &metadata, &state, &from, &until].into_iter().all(Option::is_none);
    let wanted = if is_any { PAGE } else { EXAMINED };
    let after = find.after.unwrap_or(0).max(0);
    let text = Text::of(db, sql!("page_end")).with_tables(&queue.name);
    let end: Option<(i64, bool)> = alone(db, text, (after, wanted as i64), MOST).await?;
    let Some((end, more)) = end else { return Ok((Vec::new(), None)) };
    let of = if queue.partitions > 0 { "q.keys[m.k + 1]" } else { "null::text" };
    let text = Text::of(db, sql!("messages")).with("key", of).with_tables(&queue.name);
    let lines: Vec<Line> = alone(db, text, (after, end, key, metadata, state, from, until), MOST).await?;
    let last = lines.last().filter(|_| lines.len() == PAGE).map(|line| line.0).filter(|last| *last < end);
    let next = last.or_else(|| more.then_some(end));
    Ok((lines, next))
}

/// A search for messages.
#[derive(Debug, Clone, Default, serde::Deserialize)]
pub struct Find {
    pub id: Option<String>,
    pub after: Option<i64>,
    pub key: Option<String>,
    pub metadata: Option<String>,
    pub state: Option<String>,
    /// The earliest time at which the messages were enqueued, in UTC.
    pub from: Option<String>,
    /// The time before which the messages were enqueued.
    pub until: Option<String>,
}
