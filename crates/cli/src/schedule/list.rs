//! `trunkline schedule list`

use std::time::SystemTime;

use serde_json::json;
use trunkline::Scheduled;

use crate::{
    database::Database,
    error::Result,
    print::{self, Table},
    text::Text,
    time,
};

pub async fn run(json: bool, database: &Database) -> Result<()> {
    let schedules = database.connect().await?.schedules().await?;
    if json {
        return print::lines(schedules.iter().map(object));
    }
    let mut table =
        Table::new(["name", "queue", "expression", "zone", "next", "last", ">priority", "key", "payload", "problem"]);
    for one in schedules {
        let next = match one.next {
            Some(next) => time::rfc3339(next),
            None if one.is_paused => "paused".to_owned(),
            None if one.problem.is_some() => "never".to_owned(),
            None => "waits for a process that runs schedules".to_owned(),
        };
        table.row([
            one.name,
            one.queue,
            one.expression,
            one.zone,
            next,
            one.last.map(time::rfc3339).unwrap_or_default(),
            one.priority.to_string(),
            one.key.unwrap_or_default(),
            Text(one.payload.into_bytes()).preview(),
            one.problem.unwrap_or_default(),
        ]);
    }
    print::text(table.to_string())
}

fn object(one: &Scheduled) -> serde_json::Value {
    let at = |time: Option<SystemTime>| time.map(time::exact);
    json!({
        "name": one.name,
        "queue": one.queue,
        "expression": one.expression,
        "zone": one.zone,
        "missed": one.missed.name(),
        "priority": one.priority,
        "key": one.key,
        "payload": one.payload,
        "metadata": one.metadata,
        "paused": one.is_paused,
        "next": at(one.next),
        "last": at(one.last),
        "problem": one.problem,
    })
}
