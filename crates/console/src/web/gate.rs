//! How many pages ask the database at a time: each has one connection to it at most, however many look.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    extract::{Request, State},
    http::StatusCode,
    middleware::Next,
    response::Response,
};
use tokio::{sync::Semaphore, time::timeout};

use super::{access::Visitor, server::Site, shield::plain};

/// Pages at a time, of all visitors.
pub const PAGES: usize = 8;
/// Of one of them, so that no visitor keeps the others from looking.
const OF_ONE: usize = 6;
/// Scrapes at a time.
const SCRAPES: usize = 2;
/// A page waits this long for its turn.
const WAIT: Duration = Duration::from_secs(5);
/// Visitors who are kept, though none of their pages is being made.
const NAMES: usize = 1_000;

#[derive(Debug)]
pub struct Gate {
    pages: Arc<Semaphore>,
    scrapes: Arc<Semaphore>,
    of: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Default for Gate {
    fn default() -> Self {
        let (pages, scrapes) = (Arc::new(Semaphore::new(PAGES)), Arc::new(Semaphore::new(SCRAPES)));
        Self { pages, scrapes, of: Mutex::default() }
    }
}

impl Gate {
    fn of(&self, visitor: &str) -> Arc<Semaphore> {
        let mut of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        if of.len() >= NAMES {
            of.retain(|_, semaphore| semaphore.available_permits() < OF_ONE);
        }
        Arc::clone(of.entry(visitor.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(OF_ONE))))
    }
}

/// What asks the database waits for its turn, and goes on to its end once it has begun, though the visitor may have gone: what the server does for it then
/// goes on, too.
pub async fn gate(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let turns = match request.extensions().get::<Visitor>() {
        _ if path == "/live" || path.starts_with("/assets/") => Vec::new(),
        Some(_) if path == "/metrics" => vec![Arc::clone(&site.gate.scrapes)],
        Some(visitor) => vec![site.gate.of(&visitor.name), Arc::clone(&site.gate.pages)],
        None => Vec::new(), // such as a login, which does not ask the database
    };
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
            "the console makes as many pages as it may at a time; try again in a moment; nothing was done\n",
        );
    };
    let made = tokio::spawn(async move {
        let response = next.run(request).await;
        drop(permits);
        response
    });
    made.await.unwrap_or_else(|_| plain(StatusCode::INTERNAL_SERVER_ERROR, "the page has an error of its own\n"))
}
