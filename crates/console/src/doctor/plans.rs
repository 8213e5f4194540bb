//! Checks that a queue's own functions find due messages through the index.

use std::collections::{HashMap, HashSet};

use trunkline::{
    Db, Description, Result,
    postgres::{Statement, Transaction},
};

use super::{Finding, SERVER, Severity, limit::Limit};
use crate::schema::Text;

macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!("../../sql/doctor/", $name, ".sql"))
    };
}

pub const NAME: &str = "plans";

/// A setting of the function that dequeues: its name and its value.
type Setting = (String, String);

/// Returns the function that finds a queue's due messages, its index, and its condition and order.
fn path(queue: &Description) -> (String, String, &'static str) {
    let name = &queue.name;
    let (verb, index, line) = match (queue.partitions > 0, queue.priorities > 1) {
        (true, _) => (
            "do_lanes_",
            "place_",
            "q.lane = 0 and q.line = '' and (q.place, q.id + 0) >= (now(), 0) and q.place <= now() order by q.place",
        ),
        (_, true) => (
            "do_lease_",
            "due_",
            "q.lane = 0 and (q.due_at, q.id + 0) >= (now(), 0) and q.due_at <= now() order by q.due_at",
        ),
        _ => ("do_lease_", "due_", "(q.due_at, q.id + 0) >= (now(), 0) and q.due_at <= now() order by q.due_at"),
    };
    (format!("{verb}{name}"), format!("{index}{name}"), line)
}

/// Returns the queue's query for the next due message.
fn next_due(db: &Db, queue: &Description) -> Text {
    let (_, _, line) = path(queue);
    let next = "select q.ctid from trunkline.{queue} q where {line}, q.id + 0 limit 1";
    Text::of(db, next).with_text("line", &Text::of(db, line)).with_tables(&queue.name)
}

/// Returns the queues that [`examine`] has to check one by one. Their function's settings differ
/// from those of the first queue's function, or their part of the common plan does not name the
/// index.
pub async fn suspects<'a>(db: &Db, limit: Limit, queues: Vec<&'a Description>) -> Vec<&'a Description> {
    match limit.answer(planned(db, &queues)).await {
        Ok(Ok(planned)) => queues.into_iter().filter(|queue| !planned.contains(&queue.name)).collect(),
        // One of the plans failed. Examining the queues one by one shows which plan, and why.
        _ => queues,
    }
}

/// The name of a function, and its settings.
type Function = (String, Vec<String>);

/// Plans the queries of all queues in one statement. Returns the queues whose plans are right.
async fn planned(db: &Db, queues: &[&Description]) -> Result<HashSet<String>> {
    let functions: Vec<String> = queues.iter().map(|queue| path(queue).0).collect();
    let functions: Vec<&str> = functions.iter().map(String::as_str).collect();
    let transaction = begin(db).await?;
    let all = Statement::<(&str, &[&str]), Vec<Function>>::new(sql!("plans_of"));
    let all: HashMap<String, Vec<String>> =
        transaction.run(&all, (db.schema_name(), &*functions)).await?.into_iter().collect();
    let settings = functions.first().and_then(|function| all.get(*function)).cloned().unwrap_or_default();
    if !settings.iter().any(|setting| setting == "enable_seqscan=off") {
        return Ok(HashSet::new());
    }
    let queues = queues.iter().zip(&functions).filter(|(_, function)| all.get(**function) == Some(&settings));
    let queues: Vec<&Description> = queues.map(|(queue, _)| *queue).collect();
    let set: Statement<(&[String],), (i64,)> = Statement::new(sql!("set"));
    let (_,) = transaction.run(&set, (&*settings,)).await?;
    let Some(explain) = Text::all_of(queues.iter().map(|queue| next_due(db, queue))) else { return Ok(HashSet::new()) };
    let plan: Vec<(String,)> = explain.explained().run_in(&transaction, ()).await?;
    transaction.rollback().await?;
    let uses = |index: &str| plan.iter().any(|(line,)| line.contains("Index") && words(line).any(|word| word == index));
    Ok(queues.iter().filter(|queue| uses(&path(queue).1)).map(|queue| queue.name.clone()).collect())
}

/// Returns the words of a line of a plan, and removes the quotes around names.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split_whitespace().map(|word| word.trim_matches('"'))
}

pub async fn begin(db: &Db) -> Result<Transaction> {
    let transaction = db.begin_with("isolation level read committed, read only").await?;
    let within: Statement<(&str,), ()> = Statement::new(include_str!("../../sql/metrics/within.sql"));
    drop(transaction.send(&within, (SERVER,)).await?); // the next statement also waits for this answer
    Ok(transaction)
}

/// Plans the query for the queue's next due message, without running it, under the settings of the
/// function that dequeues. Returns a finding if the plan does not use the index, or if the function
/// has lost its settings.
pub async fn examine(db: &Db, queue: &Description) -> Result<Option<Finding>> {
    let name = &queue.name;
    let (function, index, _) = path(queue);
    let transaction = begin(db).await?;
    let settings: Statement<(&str, &str), Vec<Setting>> = Statement::new(sql!("plans"));
    let settings = transaction.run(&settings, (db.schema_name(), &*function)).await?;
    let set: Statement<(&str, &str), (String,)> = Statement::new("select pg_catalog.set_config($1, $2, true)");
    for (setting, value) in &settings {
        let (_,) = transaction.run(&set, (setting, value)).await?;
    }
    let explain = next_due(db, queue).explained();
    let plan: Vec<(String,)> = explain.run_in(&transaction, ()).await?;
    transaction.rollback().await?;
    let scan =
        plan.iter().map(|(line,)| line.trim().trim_start_matches("->").trim()).find(|line| line.contains("Scan"));
    let scan = scan.unwrap_or("no scan").split("  (").next().unwrap_or_default();
    let has_settings = settings.iter().any(|(setting, value)| setting == "enable_seqscan" && value == "off");
    let what = match (scan.contains(&index), has_settings) {
        (true, true) => return Ok(None),
        (true, false) => format!("function {function} has lost the settings for its query plans"),
        (false, _) => format!("due messages are found by {scan}, and not along index {index}"),
    };
    let mend = match has_settings {
        true => "vacuum (analyze) trunkline.{queue};",
        false => "select trunkline.install_queue({name});",
    };
    Ok(Some(Finding {
        check: NAME,
        severity: Severity::Wrong,
        queue: Some(name.clone()),
        queues: vec![name.clone()],
        what,
        since: None,
        why: "A dequeue reads the whole table, or will do so once the statistics suggest it. The more messages wait, the longer each dequeue takes.".to_owned(),
        mend: Text::of(db, mend).with_tables(name).into_string(),
    }))
}
