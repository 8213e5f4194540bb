//! Checks that a queue's own functions find due messages through the index.

use trunkline::{Db, Description, Result, postgres::Statement};

use super::{Finding, Severity};
use crate::schema::Text;

pub const NAME: &str = "plans";

/// A setting of the function that dequeues: its name and its value.
type Setting = (String, String);

/// Asks the server for the query plan, under the settings of the function. The statement itself is
/// not run.
pub async fn examine(db: &Db, queue: &Description) -> Result<Option<Finding>> {
    let name = &queue.name;
    let (verb, index, line) = match (queue.partitions > 0, queue.priorities > 1) {
        (true, _) => (
            "do_lanes_",
            format!("place_{name}"),
            "q.lane = 0 and q.line = '' and (q.place, q.id + 0) >= (now(), 0) and q.place <= now() order by q.place",
        ),
        (_, true) => (
            "do_lease_",
            format!("due_{name}"),
            "q.lane = 0 and (q.due_at, q.id + 0) >= (now(), 0) and q.due_at <= now() order by q.due_at",
        ),
        _ => (
            "do_lease_",
            format!("due_{name}"),
            "(q.due_at, q.id + 0) >= (now(), 0) and q.due_at <= now() order by q.due_at",
        ),
    };
    let transaction = db.begin_with("isolation level read committed, read only").await?;
    let within: Statement<(&str,), ()> = Statement::new(include_str!("../../sql/metrics/within.sql"));
    drop(transaction.send(&within, (super::SERVER,)).await?); // the next statement waits for both answers
    let settings: Statement<(&str, &str), Vec<Setting>> = Statement::new(include_str!("../../sql/doctor/plans.sql"));
    let settings = transaction.run(&settings, (db.schema_name(), &*format!("{verb}{name}"))).await?;
    let set: Statement<(&str, &str), (String,)> = Statement::new("select pg_catalog.set_config($1, $2, true)");
    for (setting, value) in &settings {
        let (_,) = transaction.run(&set, (setting, value)).await?;
    }
    let line = Text::of(db, line);
    let explain = "explain select q.ctid from trunkline.{queue} q where {line}, q.id + 0 limit 1";
    let explain = Text::of(db, explain).with_text("line", &line).with_tables(name);
    let plan: Vec<(String,)> = explain.run_in(&transaction, ()).await?;
    transaction.rollback().await?;
    let scan =
        plan.iter().map(|(line,)| line.trim().trim_start_matches("->").trim()).find(|line| line.contains("Scan"));
    let scan = scan.unwrap_or("no scan").split("  (").next().unwrap_or_default();
    let has_settings = settings.iter().any(|(setting, value)| setting == "enable_seqscan" && value == "off");
    let what = match (scan.contains(&index), has_settings) {
        (true, true) => return Ok(None),
        (true, false) => format!("function {verb}{name} has lost the settings by which it is planned"),
        (false, _) => format!("what is due is looked for by {scan}, and not along index {index}"),
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
        why: "A dequeue reads the whole table, or will as soon as the statistics say so. The more waits, the longer each takes.".to_owned(),
        mend: Text::of(db, mend).with_tables(name).into_string(),
    }))
}
