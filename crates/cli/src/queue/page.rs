//! Descriptions of queues: a list with one line per queue, or a page about one queue.

use serde_json::{Value, json};
use trunkline::{Db, Description, Limits, Scheduled, Stats, postgres::Statement};

use crate::{
    clean::clean,
    error::{Error, Result, lacks_right},
    print::{self, Table, thousands},
    text::Unread,
    time,
};

/// Prints the settings of queues, one line each.
pub fn list(queues: &[(String, Description)], as_json: bool) -> Result<()> {
    if as_json {
        return print::lines(queues.iter().map(|(place, queue)| on(place, settings(queue))));
    }
    let several = queues.iter().any(|(place, _)| !place.is_empty());
    let headers =
        ["name", "type", ">max attempts", ">lease", ">max batch", ">priorities", ">partitions", "created at", "limits"];
    let mut table = Table::new(headers.into_iter().chain(several.then_some("server")));
    for (place, queue) in queues {
        let cells = [
            queue.name.clone(),
            queue.payload.clone(),
            queue.max_attempts.to_string(),
            time::age(queue.lease),
            queue.max_batch.to_string(),
            queue.priorities.to_string(),
            queue.partitions.to_string(),
            time::rfc3339(queue.created_at),
            [queue.is_paused.then(|| "paused".to_owned())]
                .into_iter()
                .flatten()
                .chain(limits(queue))
                .collect::<Vec<_>>()
                .join(", "),
        ];
        table.row(cells.into_iter().chain(several.then(|| place.clone())));
    }
    print::text(table.to_string())
}

/// Prints the page of a queue, once for each server.
pub async fn show(dbs: &[(String, Db)], name: &str, as_json: bool) -> Result<()> {
    let mut pages = Vec::new();
    for (place, db) in dbs {
        pages.push((place, Page::of(db, name).await.map_err(|error| error.at(place))?));
    }
    if as_json {
        return print::lines(pages.iter().map(|(place, page)| on(place, page.object())));
    }
    let texts: Vec<String> = pages.iter().map(|(place, page)| page.text(place)).collect();
    print::text(texts.join("\n"))
}

/// The page of a queue. A field is `None` if the role may not see it.
struct Page {
    queue: Description,
    stats: Option<Stats>,
    /// The bytes on disk, for messages, dead letters and the archive.
    sizes: [i64; 3],
    schedules: Option<Vec<Scheduled>>,
    /// Each role, its right, and whether that right covers all queues.
    rights: Option<Vec<(String, String, bool)>>,
}

impl Page {
    async fn of(db: &Db, name: &str) -> Result<Self> {
        let queue = db.describe_queue(name).await?;
        let stats = async { db.queue::<Unread>(name).await?.stats().await };
        let schedules =
            visible(db.schedules().await)?.map(|all| all.into_iter().filter(|one| one.queue == name).collect());
        let stats = visible(stats.await)?;
        let (sizes, rights) = (sizes(db, name).await?, visible(rights(db, name).await)?);
        Ok(Self { queue, stats, sizes, schedules, rights })
    }

    fn text(&self, place: &str) -> String {
        let queue = &self.queue;
        let some = |parts: Vec<String>| if parts.is_empty() { "none".to_owned() } else { parts.join(", ") };
        let [messages, dead, archive] =
            self.sizes.map(|bytes| indicatif::BinaryBytes(bytes.unsigned_abs()).to_string());
        let mut lines = vec![
            ("name", queue.name.clone()),
            ("type", queue.payload.clone()),
            ("created at", time::rfc3339(queue.created_at)),
            ("state", state(queue)),
            ("max attempts", queue.max_attempts.to_string()),
            ("lease", time::age(queue.lease)),
            ("max batch", queue.max_batch.to_string()),
            (
                "priorities",
                match queue.priorities {
                    0 | 1 => "none".to_owned(),
                    number => format!("{number}; each level counts as {} of waiting", time::age(queue.aging)),
                },
            ),
            ("uniqueness", if queue.uniqueness { "yes" } else { "no" }.to_owned()),
            (
                "keys",
                match queue.partitions {
                    0 => "none".to_owned(),
                    partitions => {
                        format!("{partitions} partitions, at most {} messages of a key at a time", queue.per_key)
                    }
                },
            ),
            ("limits", some(limits(queue).collect())),
            ("messages", self.stats.as_ref().map_or_else(unseen, counts)),
            ("dead letters", self.stats.as_ref().map_or_else(unseen, |stats| thousands(stats.dead))),
            ("archived", self.stats.as_ref().map_or_else(unseen, |stats| thousands(stats.archived))),
            ("size", format!("{messages} of messages, {dead} of dead letters, {archive} of archive")),
            ("schedules", self.schedules.as_ref().map_or_else(unseen, |all| some(all.iter().map(schedule).collect()))),
            ("rights", self.rights.as_ref().map_or_else(unseen, |all| some(all.iter().map(right).collect()))),
        ];
        if !place.is_empty() {
            lines.insert(1, ("server", place.to_owned()));
        }
        let lines: Vec<String> = lines.iter().map(|(name, text)| format!("{name:<14}{}\n", clean(text))).collect();
        lines.concat()
    }

    fn object(&self) -> Value {
        let mut object = settings(&self.queue);
        object["stats"] = self.stats.as_ref().map_or(Value::Null, |stats| {
            json!({
                "due": stats.due, "delayed": stats.delayed, "leased": stats.leased, "to_retry": stats.to_retry,
                "dead": stats.dead, "archived": stats.archived, "rows": stats.rows, "messages": stats.messages,
            })
        });
        let [messages, dead, archive] = self.sizes;
        object["bytes"] = json!({ "messages": messages, "dead": dead, "archive": archive });
        object["schedules"] =
            json!(self.schedules.as_ref().map(|all| all.iter().map(|one| &one.name).collect::<Vec<_>>()));
        object["rights"] = json!(self.rights.as_ref().map(|all| {
            all.iter()
                .map(|(role, kind, all)| json!({ "role": role, "kind": kind, "all_queues": all }))
                .collect::<Vec<_>>()
        }));
        object
    }
}

fn unseen() -> String {
    "(this role may not see them)".to_owned()
}

/// Returns `None` for an error about missing rights.
fn visible<T>(asked: trunkline::Result<T>) -> Result<Option<T>> {
    match asked {
        Err(error) if lacks_right(&error) => Ok(None),
        asked => asked.map(Some).map_err(Error::from),
    }
}

fn state(queue: &Description) -> String {
    match (queue.is_paused, queue.paused_at) {
        (true, Some(since)) => format!("paused since {}", time::rfc3339(since)),
        (true, None) => "paused".to_owned(),
        (false, _) => "open".to_owned(),
    }
}

fn limits(queue: &Description) -> impl Iterator<Item = String> {
    let Limits { max_leased, per_second, burst, key_per_second, key_burst, .. } = queue.limits;
    let leased = max_leased.map(|most| format!("{most} leased"));
    let rate = per_second.map(|rate| format!("{rate}/s, {} at once", burst.unwrap_or(1)));
    let of_keys = key_per_second.map(|rate| format!("{rate}/s of a key, {} at once", key_burst.unwrap_or(1)));
    [leased, rate, of_keys].into_iter().flatten()
}

fn counts(stats: &Stats) -> String {
    let [due, delayed, leased, to_retry] = [stats.due, stats.delayed, stats.leased, stats.to_retry].map(thousands);
    let rows = match stats.rows {
        1 => "one row".to_owned(),
        rows => format!("{} rows", thousands(rows)),
    };
    format!("{due} due, {delayed} delayed, {leased} leased, {to_retry} to retry, in {rows}")
}

fn schedule(one: &Scheduled) -> String {
    let state = match (&one.problem, one.next) {
        _ if one.is_paused => "paused".to_owned(),
        (Some(problem), _) => problem.clone(),
        (None, Some(next)) => format!("next {}", time::rfc3339(next)),
        (None, None) => "waits for a process that runs schedules".to_owned(),
    };
    format!("{} ({} in {}: {state})", one.name, one.expression, one.zone)
}

fn right((role, kind, all): &(String, String, bool)) -> String {
    format!("{role} ({kind}{})", if *all { " of all queues" } else { "" })
}

/// Returns the sizes of a queue's tables in bytes, including their indexes. The statement qualifies
/// every name and uses no operator, because the search path may contain other objects with the same
/// names.
async fn sizes(db: &Db, queue: &str) -> Result<[i64; 3]> {
    static SIZE: Statement<(&str,), (Option<i64>,)> =
        Statement::new("select pg_catalog.pg_total_relation_size(pg_catalog.to_regclass($1))");
    let schema = db.schema_name().replace('"', "\"\"");
    let mut sizes = [0; 3];
    for (at, kind) in [(0, "queue"), (0, "line"), (0, "lane"), (0, "unique"), (1, "dead"), (2, "archive")] {
        let (size,) = db.run(&SIZE, (&*format!("\"{schema}\".\"{kind}_{queue}\""),)).await?;
        sizes[at] += size.unwrap_or(0);
    }
    Ok(sizes)
}

/// Returns the roles that have a right on the queue, sorted by name.
async fn rights(db: &Db, queue: &str) -> trunkline::Result<Vec<(String, String, bool)>> {
    let schema = db.schema_name().replace('"', "\"\"");
    let granted: Statement<(), Vec<(String, String, String)>> =
        Statement::of(format!("select g.role, g.kind, g.queue from \"{schema}\".granted g"));
    let all = db.run(&granted, ()).await?.into_iter().filter(|(_, _, of)| of.is_empty() || of == queue);
    let mut rights: Vec<_> = all.map(|(role, kind, of)| (role, kind, of.is_empty())).collect();
    rights.sort();
    Ok(rights)
}

fn on(place: &str, mut object: Value) -> Value {
    if !place.is_empty() {
        object["server"] = place.into();
    }
    object
}

fn settings(queue: &Description) -> Value {
    json!({
        "name": queue.name,
        "type": queue.payload,
        "max_attempts": queue.max_attempts,
        "lease_s": queue.lease.as_secs_f64(),
        "max_batch": queue.max_batch,
        "created_at": time::exact(queue.created_at),
        "paused": queue.is_paused,
        "paused_at": queue.paused_at.map(time::exact),
        "max_leased": queue.limits.max_leased,
        "per_second": queue.limits.per_second,
        "burst": queue.limits.burst,
        "key_per_second": queue.limits.key_per_second,
        "key_burst": queue.limits.key_burst,
        "priorities": queue.priorities,
        "aging_s": queue.aging.as_secs_f64(),
        "uniqueness": queue.uniqueness,
        "partitions": queue.partitions,
        "per_key": queue.per_key,
    })
}
