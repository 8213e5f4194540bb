//! Stores the last hour of each queue. All consoles of a database share it, if their roles may
//! store it.

use std::time::Duration;

use tokio::time::Instant;
use trunkline::{Db, Result};

use super::{
    point::{Flow, Point},
    statement::{ask, sql},
};

/// A minute of a queue: its name, its age in seconds, the depth, and how many seconds the oldest
/// message had been due. The last three numbers are the messages that were enqueued, left and died
/// per second.
type Minute = (String, f64, i64, f64, Option<f64>, Option<f64>, Option<f64>);

/// Writes the latest point of each queue, unless another console has written that minute. Returns
/// the last hour, the oldest points first.
pub async fn share(db: &Db, last: Vec<(&str, &Point)>) -> Result<Vec<(String, Point)>> {
    let flow = |of: fn(&Flow) -> f64| -> Vec<Option<f64>> {
        last.iter().map(|(_, point)| point.flow.as_ref().map(of)).collect()
    };
    let names: Vec<&str> = last.iter().map(|(name, _)| *name).collect();
    let depths: Vec<i64> = last.iter().map(|(_, point)| i64::try_from(point.depth).unwrap_or(i64::MAX)).collect();
    let oldest: Vec<f64> = last.iter().map(|(_, point)| point.oldest).collect();
    let (came, went, died) = (flow(|flow| flow.came), flow(|flow| flow.went), flow(|flow| flow.died));
    let () = ask(db, sql!("keep_history"), (names, depths, oldest, came, went, died)).await?;
    let (rows, now): (Vec<Minute>, Instant) = (ask(db, sql!("history"), ()).await?, Instant::now());
    let point = |(queue, ago, depth, oldest, came, went, died): Minute| {
        let at = now.checked_sub(Duration::try_from_secs_f64(ago).ok()?)?;
        let flow = came.zip(went).zip(died).map(|((came, went), died)| Flow { came, went, died });
        Some((queue, Point { at, depth: depth.unsigned_abs(), oldest, flow }))
    };
    Ok(rows.into_iter().filter_map(point).collect())
}
