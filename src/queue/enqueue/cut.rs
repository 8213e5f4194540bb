//! A long list of messages, cut into rows as it is encoded.

use std::marker::PhantomData;

use bytes::BytesMut;

use crate::{
    error::Result,
    queue::{
        coalesce::BATCH_BYTES,
        draft::sealed::Parts,
        handle::Shared,
        metadata::Stamped,
        payload::{Payload, PayloadColumn},
        statements::Statements,
        trace::{TraceContext, stamped},
    },
};

/// A row, ready for an insert.
#[derive(Default)]
pub(super) struct Cuttings {
    /// When its messages are due, as the statements take it.
    pub due: f64,
    pub count: usize,
    /// The payloads.
    pub elements: BytesMut,
    pub metadata: Stamped,
}

impl Cuttings {
    fn bytes(&self) -> usize {
        self.elements.len() + self.metadata.len()
    }
}

/// Cuts messages into rows, a statement's worth at a time.
pub(super) struct Cut<'a, M, T> {
    column: &'a PayloadColumn,
    max_batch: usize,
    rest: M,
    /// Of a message that did not fit into the row before: its payload's element, its metadata's, and when it is due.
    carried: Option<(BytesMut, BytesMut, f64)>,
    /// The trace that they continue.
    trace: Option<TraceContext>,
    of: PhantomData<fn() -> T>,
}

impl<'a, T: Payload, D: Parts<T> + 'a, M: ExactSizeIterator<Item = &'a D>> Cut<'a, M, T> {
    pub fn new(shared: &'a Shared, messages: M, trace: Option<TraceContext>) -> Self {
        let max_batch = shared.description.max_batch as usize;
        Self { column: &shared.column, max_batch, rest: messages, carried: None, trace, of: PhantomData }
    }

    /// Messages that are left to be cut.
    pub fn len(&self) -> usize {
        self.rest.len() + usize::from(self.carried.is_some())
    }

    pub fn is_done(&self) -> bool {
        self.len() == 0
    }

    pub fn next_rows(&mut self) -> Result<Vec<Cuttings>> {
        let mut rows = Vec::new();
        let mut bytes = 0;
        while rows.len() < Statements::ROWS && bytes < 4 * BATCH_BYTES && !self.is_done() {
            let row = self.next_row()?;
            bytes += row.bytes();
            rows.push(row);
        }
        Ok(rows)
    }

    fn next_row(&mut self) -> Result<Cuttings> {
        let mut row = Cuttings::default();
        let mut stamp = BytesMut::new();
        if let Some((element, metadata, due)) = self.carried.take() {
            row.elements = element;
            row.due = due;
            row.count = 1;
            if !metadata.is_empty() {
                row.metadata.push(0, &metadata);
            }
        }
        while row.count < self.max_batch {
            let Some(message) = self.rest.next() else { break };
            let (before, metadata, due) = (row.elements.len(), message.metadata(), message.due().number()?);
            self.column.encode(message.payload(), &mut row.elements)?;
            stamp.clear();
            if !metadata.is_empty() || self.trace.is_some() {
                stamped(metadata, self.trace.as_ref()).encode(&mut stamp)?;
            }
            let is_another = due.to_bits() != row.due.to_bits() || row.bytes() + stamp.len() > BATCH_BYTES;
            if row.count > 0 && is_another {
                self.carried = Some((row.elements.split_off(before), stamp, due));
                break;
            }
            row.due = due;
            if !stamp.is_empty() {
                row.metadata.push(row.count, &stamp);
            }
            row.count += 1;
        }
        Ok(row)
    }
}
