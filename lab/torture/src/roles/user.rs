//! The things that every process needs: a history, random numbers, connections, and a signal to
//! end.

use std::{
    fmt::Display,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::sync::watch;
use trunkline::{Db, Error, Message, Queue};

use super::Part;
use crate::{
    history::{Call, Got, Log, Said, Verb},
    random::Random,
    tag::{self, Tags},
};

/// A handle that the tasks of a process share; it is cheap to clone.
#[derive(Clone)]
pub struct User(Arc<Inner>);

struct Inner {
    process: String,
    log: Log,
    tags: Tags,
    url: String,
    random: Mutex<Random>,
    stopped: watch::Receiver<bool>,
}

impl User {
    pub fn new(part: &Part, log: Log, stopped: watch::Receiver<bool>) -> Self {
        let process = part.history.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let (tags, random) = (Tags::of(part.nr), Mutex::new(Random::of(part.seed, part.nr)));
        Self(Arc::new(Inner { process, log, tags, url: part.url.clone(), random, stopped }))
    }

    /// Returns the operation's name in reports.
    pub fn name(&self, op: u64) -> String {
        format!("{}:{op}", self.0.process)
    }

    pub fn is_stopped(&self) -> bool {
        *self.0.stopped.borrow()
    }

    /// Waits until the process is asked to end.
    pub async fn stopped(&self) {
        let mut stopped = self.0.stopped.clone();
        let _ = stopped.wait_for(|stopped| *stopped).await; // a closed channel also means the end
    }

    /// Returns random numbers for one task.
    pub fn random(&self) -> Random {
        let seed = self.0.random.lock().unwrap_or_else(PoisonError::into_inner).next();
        Random::of(seed, 0)
    }

    pub fn url(&self) -> &str {
        &self.0.url
    }

    pub fn tag(&self) -> u64 {
        self.0.tags.next()
    }

    pub fn tags(&self, n: u64) -> Vec<u64> {
        (0..n).map(|_| self.tag()).collect()
    }

    pub fn invoked(&self, call: Call) -> u64 {
        self.0.log.invoked(call)
    }

    pub fn say(&self, op: u64, said: Said) {
        self.0.log.say(op, said);
    }

    /// Records the outcome of a call of the library.
    pub fn end<T>(&self, op: u64, outcome: Result<T, Error>, said: impl FnOnce(&T) -> Said) -> Option<T> {
        match outcome {
            Ok(value) => {
                self.say(op, said(&value));
                Some(value)
            }
            Err(error) => {
                self.say(op, failed(&error));
                None
            }
        }
    }

    /// Ends leases by the call `end` of the library, and records the call.
    pub async fn end_leases(
        &self,
        verb: Verb,
        queue: &str,
        named: Vec<(i64, i32)>,
        ms: u64,
        end: impl Future<Output = Result<(), Error>>,
    ) {
        if named.is_empty() {
            return;
        }
        let op = self.invoked(Call::new(verb, queue).named(named).ms(ms));
        self.end(op, end.await, |()| Said::ok());
    }

    /// Connects, with as many attempts as necessary. Returns `None` if the process is asked to end
    /// before that.
    pub async fn db(&self) -> Option<Db> {
        while !self.is_stopped() {
            match Db::connect(self.url()).await {
                Ok(db) => return Some(db),
                Err(error) => self.pause(&error).await,
            }
        }
        None
    }

    pub async fn queue(&self, db: &Db, name: &str) -> Option<Queue<String>> {
        while !self.is_stopped() {
            match db.queue::<String>(name).await {
                Ok(queue) => return Some(queue),
                Err(error) => self.pause(&error).await,
            }
        }
        None
    }

    /// Prints an error, and waits before the next attempt.
    pub async fn pause(&self, error: &(impl Display + ?Sized)) {
        eprintln!("{error}");
        self.rest(Duration::from_millis(100)).await;
    }

    /// Waits between two operations, or until the process is asked to end.
    pub async fn rest(&self, pause: Duration) {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.stopped() => {}
        }
    }
}

/// Returns the outcome that corresponds to an error of the library.
fn failed(error: &Error) -> Said {
    if error.is_lease_lost() {
        return Said::Ok { ids: Vec::new(), got: Vec::new(), lost: error.lost_ids().to_vec() };
    }
    let text = error.to_string();
    if error.is_outcome_unknown() { Said::Unknown(text) } else { Said::Failed(text) }
}

pub fn tag_of(message: &Message<String>) -> u64 {
    tag::of(&message.payload, message.metadata.get(tag::BESIDE))
}

pub fn got(messages: &[Message<String>]) -> Vec<Got> {
    messages.iter().map(|message| (message.id, message.attempt, tag_of(message))).collect()
}

pub fn named(messages: &[Message<String>]) -> Vec<(i64, i32)> {
    messages.iter().map(|message| (message.id, message.attempt)).collect()
}
