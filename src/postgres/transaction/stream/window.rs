//! The number of rows that a stream requests ahead.

use bytes::Bytes;
use postgres_types::{Kind, Type};

use crate::postgres::wire::{Columns, frames};

/// The size in bytes of the rows that are requested ahead. It must be larger than the amount of
/// data in transit on a network with high latency.
const AHEAD: usize = 4 << 20;
/// The assumed size of a row without a fixed size, in bytes, before the first row arrives.
const UNKNOWN: usize = 2 << 10;
/// The maximum number of rows that are requested ahead.
const MOST: usize = 64 << 10;

/// The number of requested rows that have not arrived, and the average size of a row.
#[derive(Debug)]
pub(super) struct Window {
    chunk: usize,
    /// False if the statement returns no rows. The portal of such a statement can run only once.
    has_rows: bool,
    requested: usize,
    row_bytes: usize,
    rows: usize,
    bytes: usize,
}

impl Window {
    pub fn new(columns: &Columns, chunk: usize) -> Self {
        let row_bytes = columns.row_bytes.get().or_else(|| size(columns)).unwrap_or(UNKNOWN);
        Self { chunk, has_rows: !columns.columns.is_empty(), requested: 0, row_bytes, rows: 0, bytes: 0 }
    }

    /// Returns the number of rows to request first. 0 means all rows.
    pub fn first(&mut self) -> i32 {
        if self.has_rows { self.next().unwrap_or(0) } else { 0 }
    }

    /// Returns the number of rows to request next, or `None` if enough of the requested rows are
    /// still to arrive.
    pub fn next(&mut self) -> Option<i32> {
        let most = (AHEAD / self.row_bytes.max(1)).clamp(2, MOST).max(self.chunk);
        if !self.has_rows || self.requested > most / 2 {
            return None;
        }
        let more = i32::try_from(most - self.requested).unwrap_or(i32::MAX);
        self.requested += more as usize;
        Some(more)
    }

    pub fn received(&mut self, columns: &Columns, chunks: &[Bytes]) {
        let rows = chunks.iter().flat_map(|chunk| frames(chunk)).filter(|(kind, _)| *kind == b'D').count();
        self.requested = self.requested.saturating_sub(rows);
        self.rows += rows;
        self.bytes += chunks.iter().map(Bytes::len).sum::<usize>();
        if let Some(average) = self.bytes.checked_div(self.rows) {
            self.row_bytes = average;
            columns.row_bytes.set(average);
        }
    }
}

/// Returns the size in bytes of a row message, if all columns have a fixed size.
fn size(columns: &Columns) -> Option<usize> {
    /// The size of a row without columns: the message's type and length, and the column count.
    const ROW: usize = 7;
    columns.columns.iter().map(|(_, ty)| value(ty).map(|bytes| bytes + 4)).sum::<Option<usize>>().map(|sum| ROW + sum)
}

fn value(ty: &Type) -> Option<usize> {
    Some(match *ty {
        Type::BOOL | Type::CHAR => 1,
        Type::INT2 => 2,
        Type::INT4 | Type::FLOAT4 | Type::OID | Type::DATE => 4,
        Type::INT8 | Type::FLOAT8 | Type::TIMESTAMP | Type::TIMESTAMPTZ | Type::TIME => 8,
        Type::UUID | Type::INTERVAL => 16,
        _ => match ty.kind() {
            Kind::Domain(base) => return value(base),
            _ => return None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(types: &[Type]) -> Columns {
        Columns::new(Vec::new(), types.iter().map(|ty| (String::new(), ty.clone())).collect())
    }

    fn row(bytes: usize) -> Bytes {
        let mut row = vec![b'D'];
        row.extend((bytes as u32 - 1).to_be_bytes());
        row.resize(bytes, 0);
        row.into()
    }

    #[test]
    fn as_many_rows_are_requested_as_fit() {
        let numbers = columns(&[Type::INT8, Type::INT4]);
        assert_eq!(Window::new(&numbers, 1).first(), MOST as i32, "27 bytes each");
        let texts = columns(&[Type::INT8, Type::TEXT]);
        let mut window = Window::new(&texts, 1);
        assert_eq!((window.first(), window.next()), (2048, None));
        window.received(&texts, &vec![row(1 << 20); 1024]);
        assert_eq!(window.next(), None, "1,024 of them are on their way");
        window.received(&texts, &vec![row(1 << 20); 1022]);
        assert_eq!(window.next(), Some(2), "of 4 MiB, two are on their way");
        assert_eq!(Window::new(&texts, 1).first(), 4, "the next stream knows the size");
        assert_eq!(Window::new(&texts, 100).first(), 100, "a chunk is always requested");
        assert_eq!(Window::new(&texts, usize::MAX).first(), i32::MAX);
    }

    #[test]
    fn statement_without_rows_runs_once() {
        let mut window = Window::new(&columns(&[]), 1);
        assert_eq!((window.first(), window.next()), (0, None));
    }
}
