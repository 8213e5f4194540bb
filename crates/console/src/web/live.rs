//! Streams the queues' current numbers as server-sent events, one event per sample.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode},
    response::sse::{Event, KeepAlive, Sse},
};
use futures_util::{Stream, stream};
use serde_json::{Map, Value, json};
use tokio::{sync::watch, time::interval};

use super::{pulse::Known, row::Row, site::Site, verdict::Verdict};

/// The interval at which the stream checks the session. A session that has ended receives no more
/// numbers.
const LOOK: Duration = Duration::from_secs(1);

/// Sends events until the console ends, or the visitor leaves or logs out. An event contains the
/// summary of all queues, and the queues whose numbers have changed since the last event. If the
/// list of queues has changed, the event contains the names of all queues.
pub fn live(
    State(site): State<Arc<Site>>,
    headers: HeaderMap,
    ended: watch::Receiver<bool>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, StatusCode> {
    let place = Arc::clone(&site.live).try_acquire_owned().map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    let mut pictures = site.pulse.picture.clone();
    pictures.mark_changed(); // sends the first event immediately
    let looks = interval(LOOK);
    let events = stream::unfold(
        (pictures, ended, Map::new(), place, site, headers, looks),
        |(mut pictures, mut ended, told, place, site, headers, mut looks)| async move {
            loop {
                tokio::select! {
                    changed = pictures.changed() => break changed.ok()?,
                    _ = ended.wait_for(|is| *is) => return None,
                    _ = looks.tick() => { site.guard.visitor(&headers)?; }
                }
            }
            site.guard.visitor(&headers)?;
            let picture = Arc::clone(&pictures.borrow_and_update());
            let now: Map<String, Value> =
                picture.queues.iter().map(|(name, known)| (name.clone(), of_queue(known))).collect();
            let others: Map<String, Value> = now
                .iter()
                .filter(|(name, numbers)| told.get(*name) != Some(*numbers))
                .map(|(name, numbers)| (name.clone(), numbers.clone()))
                .collect();
            let problem = site.pulse.problem();
            let verdict = Verdict::of(&picture, problem.as_deref());
            let mut event = json!({ "queues": others, "problem": problem, "verdict": verdict });
            if !told.keys().eq(now.keys()) {
                event["names"] = now.keys().cloned().collect();
            }
            let event = Event::default().data(event.to_string());
            Some((Ok(event), (pictures, ended, now, place, site, headers, looks)))
        },
    );
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(15))))
}

/// Returns the numbers of a queue, by the names of the page's cells.
fn of_queue(known: &Known) -> Value {
    let row = Row::of(known);
    json!({
        "due": row.due, "leased": row.leased, "delayed": row.delayed, "retrying": row.retrying, "dead": row.dead,
        "oldest": row.oldest, "came": row.came, "went": row.went, "died": row.died, "states": row.states, "points": row.points,
    })
}
