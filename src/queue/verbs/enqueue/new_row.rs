//! One row of an insert, created from a batch or from a list.

use super::cut::Cuttings;
use crate::{
    postgres::array::after,
    queue::{batch::coalesce::Batch, message::metadata::Beside},
};

#[derive(Clone, Copy)]
pub(super) struct NewRow<'a> {
    pub due: f64,
    /// The number of the priority or partition, in the type of the column.
    pub lane: i16,
    pub count: usize,
    pub elements: &'a [u8],
    pub metadata: Beside<'a>,
    /// The keys, as elements of an array; empty if the queue has no keys.
    pub keys: &'a [u8],
    /// The values of columns that users added.
    pub columns: Option<&'a str>,
}

impl<'a> NewRow<'a> {
    pub fn of(batch: &'a Batch) -> Self {
        let metadata = batch.metadata.as_ref().map_or_else(Beside::default, |metadata| metadata.all());
        let Batch { due, lane, count, elements, keys, columns, .. } = batch;
        let (lane, columns) = (lane.cast_signed(), columns.as_deref());
        Self { due: *due, lane, count: *count, elements, metadata, keys, columns }
    }

    /// Returns true if the row is due now and has no metadata.
    pub fn is_bare(&self) -> bool {
        self.due == 0.0 && self.metadata.is_empty()
    }

    pub fn of_cuttings(row: &'a Cuttings) -> Self {
        let Cuttings { due, lane, count, elements, metadata, keys, columns } = row;
        let (lane, columns) = (lane.cast_signed(), columns.as_deref());
        Self { due: *due, lane, count: *count, elements, metadata: metadata.all(), keys, columns }
    }

    /// Splits the row in the middle. The row must have at least two elements.
    pub fn halves(self) -> (Self, Self) {
        let left = self.count / 2;
        let (one, two) = self.elements.split_at(after(left, self.elements));
        let (beside, rest) = self.metadata.halves(left);
        let (keys, others) = self.keys.split_at(after(left, self.keys));
        (
            Self { count: left, elements: one, metadata: beside, keys, ..self },
            Self { count: self.count - left, elements: two, metadata: rest, keys: others, ..self },
        )
    }
}
