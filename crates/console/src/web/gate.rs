//! Limits the number of pages that query the database at the same time. Each page uses at most one
//! connection.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::Semaphore;

use super::access::Visitor;

/// The maximum number of simultaneous pages, for all visitors.
pub const PAGES: usize = 8;
/// The maximum number of simultaneous pages for one visitor, so that no visitor blocks all others.
const OF_ONE: usize = 6;
/// The maximum number of simultaneous scrapes.
const SCRAPES: usize = 2;
/// The maximum number of visitors whose semaphores stay in memory while they load no page.
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
    /// Returns the semaphores that a request acquires, in this order.
    pub fn turns(&self, path: &str, visitor: Option<&Visitor>) -> Vec<Arc<Semaphore>> {
        match visitor {
            _ if path == "/live" || path.starts_with("/assets/") => Vec::new(),
            Some(_) if path == "/metrics" => vec![Arc::clone(&self.scrapes)],
            Some(visitor) => vec![self.of(&visitor.name), Arc::clone(&self.pages)],
            None => Vec::new(), // for example a login, which does not query the database
        }
    }
}
