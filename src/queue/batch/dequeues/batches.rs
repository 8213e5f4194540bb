//! Dequeued rows that are being passed to a caller.

use std::{fmt, sync::Arc};

use tokio::time::Instant;

use super::distribute::distribute;
use crate::postgres::wire::Row;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum DequeueMode {
    Take,
    /// Lease for this number of seconds, or for the queue's lease time if `None`. A message whose
    /// last lease expired is returned alone.
    Lease(Option<f64>),
    /// Like `Lease`, but messages whose last lease expired are returned with others.
    LeaseTogether(Option<f64>),
    /// Like `Lease`, but only from the partitions of the worker with this number.
    Lanes(i64, Option<f64>),
}

pub(crate) trait PutBack: Send + Sync {
    /// Puts dequeued rows back, in a separate task.
    fn put_rows_back(self: Arc<Self>, rows: Vec<Row>, how: DequeueMode);
}

/// Rows that are being passed to a caller. Rows that remain when this value is dropped go back to
/// the queue.
pub(crate) struct Batches {
    pub rows: Vec<Row>,
    /// The number of messages in these rows.
    pub size: usize,
    pub how: DequeueMode,
    /// The time before the statement was sent. Leases end no earlier than their time after it.
    pub asked: Instant,
    /// True if the statement stopped because it had buried many messages. Others may be due.
    pub has_stopped: bool,
    queue: Arc<dyn PutBack>,
}

impl Batches {
    pub fn of(mut rows: Vec<Row>, how: DequeueMode, asked: Instant, queue: Arc<dyn PutBack>) -> Self {
        // The last row has no id if the statement stopped.
        let has_stopped = rows.pop_if(|row| matches!(row.read::<Option<i64>>(0), Ok(None))).is_some();
        let size = rows.iter().map(|row| row.read::<i32>(2).unwrap_or_default().unsigned_abs() as usize).sum();
        Self { rows, size, how, asked, has_stopped, queue }
    }

    /// Returns true if a message whose last lease expired was returned alone. Others may be due.
    pub fn is_apart(&self) -> bool {
        let is_apart = |row: &Row| row.read(6).unwrap_or_default();
        matches!(self.how, DequeueMode::Lease(_)) && self.rows.first().is_some_and(is_apart)
    }

    /// Returns the average size of a message in bytes, for the row with the largest average.
    pub fn bytes_each(&self) -> usize {
        let each = |row: &Row| row.bytes() / row.read::<i32>(2).unwrap_or_default().unsigned_abs().max(1) as usize;
        self.rows.iter().map(each).max().unwrap_or_default()
    }

    /// Distributes the rows to the requests, in order. Each request receives at most the number of
    /// messages that it asks for.
    pub fn distribute(mut self, asks: &[usize]) -> Vec<Self> {
        if asks.len() == 1 {
            return vec![self];
        }
        let parts = distribute(std::mem::take(&mut self.rows), asks);
        let part = |rows| {
            let mut part = Self::of(rows, self.how, self.asked, self.queue.clone());
            part.has_stopped = self.has_stopped;
            part
        };
        parts.into_iter().map(part).collect()
    }
}

impl fmt::Debug for Batches {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, how, .. } = self;
        out.debug_struct("Batches").field("rows", rows).field("how", how).finish_non_exhaustive()
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        if !rows.is_empty() {
            self.queue.clone().put_rows_back(rows, self.how);
        }
    }
}
