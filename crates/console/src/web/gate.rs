//! How many pages ask the database at a time: each has one connection to it at most, however many
//! look.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::Semaphore;

use super::access::Visitor;

/// Pages at a time, of all visitors.
pub const PAGES: usize = 8;
/// Of one of them, so that no visitor keeps the others from looking.
const OF_ONE: usize = 6;
/// Scrapes at a time.
const SCRAPES: usize = 2;
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
    /// The turns that a request waits for, in their order.
    pub fn turns(&self, path: &str, visitor: Option<&Visitor>) -> Vec<Arc<Semaphore>> {
        match visitor {
            _ if path == "/live" || path.starts_with("/assets/") => Vec::new(),
            Some(_) if path == "/metrics" => vec![Arc::clone(&self.scrapes)],
            Some(visitor) => vec![self.of(&visitor.name), Arc::clone(&self.pages)],
            None => Vec::new(), // such as a login, which does not ask the database
        }
    }
}
