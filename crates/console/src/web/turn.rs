//! Makes pages wait for their turn to query the database.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{Request, State},
    http::StatusCode,
    middleware::Next,
    response::Response,
};
use tokio::time::timeout;

use super::{access::Visitor, reply::plain, site::Site};

/// The maximum time that a page waits for its turn.
const WAIT: Duration = Duration::from_secs(5);

/// The maximum time that a page may take. The server stops each of its queries after ten seconds.
const PAGE: Duration = Duration::from_secs(30);
/// The maximum time of a page if the last sample found no connection to the database. For each
/// query of a page, the library waits for a lost server again.
const PAGE_IN_AN_OUTAGE: Duration = Duration::from_secs(3);

/// Makes a page wait for its turn to query the database. Once started, a page runs to its end even
/// if the visitor has left, because the server continues to work on its queries. A page that only
/// reads has a time limit; an action has none.
pub async fn turn(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let turns = site.gate.turns(request.uri().path(), request.extensions().get::<Visitor>());
    if turns.is_empty() {
        return next.run(request).await;
    }
    let wait = async {
        let mut permits = Vec::new();
        for turn in turns {
            permits.push(turn.acquire_owned().await.ok()?);
        }
        Some(permits)
    };
    let Ok(Some(permits)) = timeout(WAIT, wait).await else {
        return plain(
            StatusCode::SERVICE_UNAVAILABLE,
            "the console is generating the maximum number of pages; try again in a moment; nothing was done\n",
        );
    };
    // Excludes the metrics, which have their own limits, and report an outage.
    let is_limited = request.method().is_safe() && request.uri().path() != "/metrics";
    let limit = match site.pulse.is_lost() {
        _ if !is_limited => Duration::MAX,
        true => PAGE_IN_AN_OUTAGE,
        false => PAGE,
    };
    let made = tokio::spawn(async move {
        let response = timeout(limit, next.run(request)).await;
        drop(permits);
        response.unwrap_or_else(|_| {
            plain(StatusCode::SERVICE_UNAVAILABLE, "the database does not answer; try again in a moment\n")
        })
    });
    made.await.unwrap_or_else(|_| {
        plain(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the console could not generate the page because of an internal error\n",
        )
    })
}
