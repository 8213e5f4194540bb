//! The page of a queue.

use std::sync::Arc;

use askama::Template;
use axum::{
    Extension,
    extract::{Path, State},
    http::StatusCode,
};

use super::{
    chart::Chart,
    pulse::Known,
    reply::{Here, Page, Visit, failing, known, told},
    row::Row,
    statement::MOST,
    view::{Frame, page},
    words,
    workings::{Workings, charts},
};
use crate::{metrics::ask::counts_within, reason::is_late};

#[derive(Template)]
#[template(path = "queue.html")]
struct QueuePage {
    frame: Frame,
    row: Row,
    settings: Vec<(&'static str, String)>,
    keyed: bool,
    prioritized: bool,
    /// The last hour, as this console sampled it.
    charts: Vec<Chart>,
    of: Arc<Workings>,
}

pub async fn queue(State(site): Here, Extension(visitor): Visit, Path(name): Path<String>) -> Page {
    let is = known(&site, &visitor, &name).await?;
    let seen = site.pulse.picture.borrow().queues.get(&name).cloned();
    let known = if let Some(mut known) = seen {
        known.description = is.clone(); // so a visitor who has paused the queue sees the change immediately
        known
    } else {
        let counts = match counts_within(&site.db, &name, MOST).await {
            Err(error) if is_late(&error) => None,
            counted => Some(failing(&site, &visitor, counted).await?),
        };
        Known::now(is.clone(), counts)
    };
    let row = Row::of(&known);
    let (db, described) = (site.db.clone(), is.clone());
    let read = async move { Workings::of(&db, &described).await };
    let Some(of) = site.workings.of(&is.name, read).await else {
        let why = "The console could not read how the queue works. Try again in a moment.";
        return Err(told(&site, &visitor, StatusCode::SERVICE_UNAVAILABLE, "The request failed", why).await);
    };
    let mut settings = vec![
        ("payload", is.payload.clone()),
        ("maximum attempts per message", is.max_attempts.to_string()),
        ("duration of a lease", words::age(is.lease)),
        ("maximum messages per row", is.max_batch.to_string()),
        ("priorities", is.priorities.to_string()),
        ("partitions", is.partitions.to_string()),
        ("unique keys", if is.uniqueness { "yes" } else { "no" }.to_owned()),
        ("limits", if row.limits.is_empty() { "none".to_owned() } else { row.limits.clone() }),
        ("schedules", if row.schedules.is_empty() { "none".to_owned() } else { row.schedules.clone() }),
        ("created", words::time(is.created_at)),
        ("size of the tables", row.bytes.clone()),
    ];
    if is.partitions > 0 {
        settings.push(("messages of a key handled at a time", is.per_key.to_string()));
    }
    if let Some((name, drains)) = &of.shard {
        let drains = if *drains { "; being drained: enqueues go to the other shards" } else { "" };
        settings.push(("name as a shard", format!("{name}{drains}")));
    }
    let frame = Frame::of_queue(&site, &visitor, &is.name).await;
    let (keyed, prioritized, charts) = (is.partitions > 0, is.priorities > 1, charts(&known));
    Ok(page(&QueuePage { frame, row, settings, keyed, prioritized, charts, of }))
}
