//! Splits a long list of messages into rows while encoding it.

use std::marker::PhantomData;

use bytes::BytesMut;

use crate::{
    error::Result,
    queue::{
        batch::coalesce::{BATCH_BYTES, INSERT_BYTES},
        handle::Shared,
        message::{
            columns,
            draft::sealed::Parts,
            keys,
            metadata::Stamped,
            payload::{Payload, PayloadColumn},
            trace::{TraceContext, stamped},
        },
    },
};

#[derive(Default)]
pub(super) struct Cuttings {
    /// The due time, in the form that statements accept.
    pub due: f64,
    /// The number of the messages' priority or partition.
    pub lane: u16,
    pub count: usize,
    /// The payloads.
    pub elements: BytesMut,
    pub metadata: Stamped,
    /// The keys, as elements of an array.
    pub keys: BytesMut,
    /// The values of columns that users added.
    pub columns: Option<Box<str>>,
}

impl Cuttings {
    fn bytes(&self) -> usize {
        self.elements.len() + self.metadata.len() + self.keys.len()
    }
}

/// Messages that are split into rows, for one statement at a time.
pub(super) struct Cut<'a, M, T> {
    shared: &'a Shared,
    column: &'a PayloadColumn,
    max_batch: usize,
    rest: M,
    /// The start of the next row: a message that did not fit into the previous row.
    carried: Option<Cuttings>,
    /// A row that the next statement inserts alone.
    apart: Option<Cuttings>,
    /// The trace that the messages continue.
    trace: Option<TraceContext>,
    of: PhantomData<fn() -> T>,
}

impl<'a, T: Payload, D: Parts<T> + 'a, M: ExactSizeIterator<Item = &'a D>> Cut<'a, M, T> {
    pub fn new(shared: &'a Shared, messages: M, trace: Option<TraceContext>) -> Self {
        let max_batch = shared.description.max_batch as usize;
        Self {
            shared,
            column: &shared.column,
            max_batch,
            rest: messages,
            carried: None,
            apart: None,
            trace,
            of: PhantomData,
        }
    }

    /// Returns the number of messages that are not in a row yet.
    pub fn len(&self) -> usize {
        self.rest.len() + usize::from(self.carried.is_some()) + self.apart.as_ref().map_or(0, |row| row.count)
    }

    pub fn is_done(&self) -> bool {
        self.len() == 0
    }

    pub fn next_rows(&mut self) -> Result<Vec<Cuttings>> {
        if let Some(row) = self.apart.take() {
            return Ok(vec![row]);
        }
        let mut rows = Vec::new();
        let mut bytes = 0;
        while rows.len() < self.shared.sql.inserts.rows() && bytes < INSERT_BYTES && !self.is_done() {
            let row = self.next_row()?;
            if row.columns.is_some() {
                if rows.is_empty() {
                    return Ok(vec![row]);
                }
                self.apart = Some(row);
                break;
            }
            bytes += row.bytes();
            rows.push(row);
        }
        Ok(rows)
    }

    fn next_row(&mut self) -> Result<Cuttings> {
        let mut row = self.carried.take().unwrap_or_default();
        let mut stamp = BytesMut::new();
        while row.count < self.max_batch {
            let Some(message) = self.rest.next() else { break };
            let (before, metadata, due) = (row.elements.len(), message.metadata(), message.due().number()?);
            let (lane, keys) = (self.shared.lane_of(message.priority(), message.key())?, row.keys.len());
            let columns = columns::of_message(message)?;
            self.column.encode(message.payload(), &mut row.elements)?;
            if let Some(key) = message.key() {
                keys::write(key, &mut row.keys);
            }
            stamp.clear();
            if !metadata.is_empty() || self.trace.is_some() {
                stamped(metadata, self.trace.as_ref()).encode(&mut stamp)?;
            }
            let is_another = due.to_bits() != row.due.to_bits()
                || lane != row.lane
                || columns != row.columns
                || row.bytes() + stamp.len() > BATCH_BYTES;
            if row.count > 0 && is_another {
                let (elements, keys) = (row.elements.split_off(before), row.keys.split_off(keys));
                let mut next = Cuttings { due, lane, count: 1, elements, metadata: Stamped::default(), keys, columns };
                if !stamp.is_empty() {
                    next.metadata.push(0, &stamp);
                }
                self.carried = Some(next);
                break;
            }
            (row.due, row.lane, row.columns) = (due, lane, columns);
            if !stamp.is_empty() {
                row.metadata.push(row.count, &stamp);
            }
            row.count += 1;
        }
        Ok(row)
    }
}
