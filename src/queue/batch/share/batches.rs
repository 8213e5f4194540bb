//! Dequeued rows on their way to a caller.

use std::{fmt, sync::Arc};

use super::deal::deal;
use crate::postgres::wire::Row;

/// How messages leave the queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Dequeue {
    Take,
    /// For that many seconds, or the queue's lease time.
    Lease(Option<f64>),
    /// As `Lease`, but a message whose lease ran out comes alone.
    LeaseApart(Option<f64>),
    /// The same along the lanes of this holder.
    Lanes(i64, Option<f64>),
}

/// The way back to the queue.
pub(crate) trait GiveBack: Send + Sync {
    /// Gives rows back that were dequeued in that way, in a task.
    fn give_rows_back(self: Arc<Self>, rows: Vec<Row>, how: Dequeue);
}

/// Rows on their way to a caller. Those that are still here when this is dropped are given back.
pub(crate) struct Batches {
    pub rows: Vec<Row>,
    /// Messages in them.
    pub size: usize,
    pub how: Dequeue,
    queue: Arc<dyn GiveBack>,
}

impl Batches {
    pub fn of(rows: Vec<Row>, how: Dequeue, queue: Arc<dyn GiveBack>) -> Self {
        let size = rows.iter().map(|row| row.read::<i32>(2).unwrap_or_default().unsigned_abs() as usize).sum();
        Self { rows, size, how, queue }
    }

    /// Bytes of a message in the row whose messages are the largest.
    pub fn bytes_each(&self) -> usize {
        let each = |row: &Row| row.bytes() / row.read::<i32>(2).unwrap_or_default().unsigned_abs().max(1) as usize;
        self.rows.iter().map(each).max().unwrap_or_default()
    }

    /// A share for each call: as many messages as it asks for, in order.
    pub fn deal(mut self, asks: &[usize]) -> Vec<Self> {
        if asks.len() == 1 {
            return vec![self];
        }
        let shares = deal(std::mem::take(&mut self.rows), asks);
        shares.into_iter().map(|rows| Self::of(rows, self.how, self.queue.clone())).collect()
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
            self.queue.clone().give_rows_back(rows, self.how);
        }
    }
}
