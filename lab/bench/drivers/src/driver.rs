use std::{future::Future, pin::Pin};

use crate::{
    Failure,
    place::Place,
    work::{Done, Work},
};

/// The future that [`Driver::run`] returns.
pub type Doing<'a> = Pin<Box<dyn Future<Output = Result<Option<Done>, Failure>> + Send + 'a>>;

/// A way of driving Postgres.
pub trait Driver: Send + Sync {
    /// Does the work once. Returns when every answer has arrived and every write is committed.
    /// Returns `None` if this way of driving Postgres has no specific form for this work.
    fn run<'a>(&'a self, work: &'a Work<'a>) -> Doing<'a>;
}

/// A driver that is being connected.
pub type Opening = Pin<Box<dyn Future<Output = Result<Box<dyn Driver>, Failure>> + Send>>;

/// A way of driving Postgres, before it is connected.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    /// The way's name in the tables.
    pub name: &'static str,
    /// A function that connects and prepares the statements.
    pub open: fn(Place) -> Opening,
}
