//! Copies of rows out of the database in the binary format.

use std::{
    fmt,
    ops::Range,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes, BytesMut};
use futures_util::Stream;
use postgres_types::{FromSql, Type, WrongType};

use super::{copy_out::CopyOutStream, failure::Error};

/// The bytes with which every copy in the binary format begins.
pub(super) const MAGIC: &[u8] = b"PGCOPY\n\xff\r\n\0";

/// A stream of the rows of a `copy … to stdout binary`. Each row is returned as it arrives.
pub struct BinaryCopyOutStream {
    stream: CopyOutStream,
    arrived: ArrivedRows,
}

impl BinaryCopyOutStream {
    /// Creates a stream that reads rows with these types.
    #[must_use]
    pub fn new(stream: CopyOutStream, types: &[Type]) -> Self {
        Self { stream, arrived: ArrivedRows::new(types) }
    }
}

impl Stream for BinaryCopyOutStream {
    type Item = Result<BinaryCopyOutRow, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { stream, arrived } = self.get_mut();
        let failure = loop {
            match arrived.next() {
                Ok(Some(row)) => return Poll::Ready(Some(Ok(row))),
                Ok(None) => {}
                Err(error) => break error,
            }
            match ready!(Pin::new(&mut *stream).poll_next(context)) {
                Some(Ok(data)) => arrived.add(data),
                Some(Err(error)) => break error,
                None if arrived.stage == BinaryStage::Ended => return Poll::Ready(None),
                None => break Error::other("the copy ends without the trailer of the binary format"),
            }
        };
        arrived.stage = BinaryStage::Ended;
        Poll::Ready(Some(Err(failure)))
    }
}

impl fmt::Debug for BinaryCopyOutStream {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("BinaryCopyOutStream").field("types", &self.arrived.types).finish_non_exhaustive()
    }
}

/// The data that have arrived. PostgreSQL sends each row as one message, but the protocol allows a
/// message to end in the middle of a row.
struct ArrivedRows {
    types: Arc<[Type]>,
    stage: BinaryStage,
    rest: Bytes,
}

#[derive(Clone, Copy, PartialEq)]
enum BinaryStage {
    Header,
    Rows,
    Ended,
}

impl ArrivedRows {
    fn new(types: &[Type]) -> Self {
        Self { types: types.into(), stage: BinaryStage::Header, rest: Bytes::new() }
    }

    fn add(&mut self, data: Bytes) {
        if self.rest.is_empty() {
            self.rest = data;
        } else {
            let mut rest = BytesMut::from(std::mem::take(&mut self.rest));
            rest.extend_from_slice(&data);
            self.rest = rest.freeze();
        }
    }

    /// Returns the next row, or `None` if no complete row has arrived.
    fn next(&mut self) -> Result<Option<BinaryCopyOutRow>, Error> {
        if self.stage == BinaryStage::Header {
            let Some(length) = header(&self.rest)? else { return Ok(None) };
            self.rest.advance(length);
            self.stage = BinaryStage::Rows;
        }
        if self.stage == BinaryStage::Ended {
            self.rest.clear(); // ignores any bytes after the trailer
            return Ok(None);
        }
        match row(&self.rest, self.types.len())? {
            BinaryPart::Row(ranges, length) => {
                let row = self.rest.split_to(length);
                Ok(Some(BinaryCopyOutRow { row, ranges, types: self.types.clone() }))
            }
            BinaryPart::Trailer => {
                self.stage = BinaryStage::Ended;
                Ok(None)
            }
            BinaryPart::Cut => Ok(None),
        }
    }
}

/// Returns the length of the header, or `None` if the header has not arrived completely.
fn header(bytes: &[u8]) -> Result<Option<usize>, Error> {
    let known = bytes.len().min(MAGIC.len());
    if bytes[..known] != MAGIC[..known] {
        return Err(Error::other("the copy is not in the binary format"));
    }
    let Some(mut rest) = bytes.get(MAGIC.len()..).filter(|rest| rest.len() >= 8) else { return Ok(None) };
    // The upper 16 flags change the format. The only one that was ever used adds OIDs to the rows.
    if rest.get_u32() >> 16 != 0 {
        return Err(Error::other("the copy is in a binary format of another version"));
    }
    let length = rest.get_u32() as usize;
    Ok((rest.len() >= length).then_some(MAGIC.len() + 8 + length))
}

enum BinaryPart {
    /// The position of each value in the row, and the length of the row.
    Row(Vec<Option<Range<usize>>>, usize),
    Trailer,
    /// The data that have arrived end in the middle of the row.
    Cut,
}

fn row(bytes: &[u8], columns: usize) -> Result<BinaryPart, Error> {
    let mut rest = bytes;
    let Ok(count) = rest.try_get_i16() else { return Ok(BinaryPart::Cut) };
    if count == -1 {
        return Ok(BinaryPart::Trailer);
    }
    if usize::try_from(count) != Ok(columns) {
        return Err(Error::other(format!("expected {columns} values but got {count}")));
    }
    let mut ranges = Vec::with_capacity(columns);
    for _ in 0..columns {
        let Ok(length) = rest.try_get_i32() else { return Ok(BinaryPart::Cut) };
        let Ok(length) = usize::try_from(length) else {
            ranges.push(None);
            continue;
        };
        let start = bytes.len() - rest.len();
        let Some(after) = rest.get(length..) else { return Ok(BinaryPart::Cut) };
        ranges.push(Some(start..start + length));
        rest = after;
    }
    Ok(BinaryPart::Row(ranges, bytes.len() - rest.len()))
}

/// A row of a copy in the binary format.
pub struct BinaryCopyOutRow {
    row: Bytes,
    ranges: Vec<Option<Range<usize>>>,
    types: Arc<[Type]>,
}

impl BinaryCopyOutRow {
    /// Returns the value of a column. Columns are counted from 0.
    ///
    /// # Errors
    /// The column does not exist, or its value does not fit the type.
    pub fn try_get<'a, T: FromSql<'a>>(&'a self, idx: usize) -> Result<T, Error> {
        let Some((ty, range)) = self.types.get(idx).zip(self.ranges.get(idx)) else {
            return Err(Error::column(idx.to_string()));
        };
        if !T::accepts(ty) {
            return Err(Error::from_sql(idx, Box::new(WrongType::new::<T>(ty.clone()))));
        }
        let value = range.clone().map(|range| &self.row[range]);
        T::from_sql_nullable(ty, value).map_err(|cause| Error::from_sql(idx, cause))
    }

    /// Returns the value of a column. Columns are counted from 0.
    ///
    /// # Panics
    /// Panics if the column does not exist, or if its value does not fit the type.
    #[track_caller]
    #[must_use]
    pub fn get<'a, T: FromSql<'a>>(&'a self, idx: usize) -> T {
        match self.try_get(idx) {
            Ok(value) => value,
            Err(error) => panic!("error retrieving column {idx}: {error}"),
        }
    }
}

impl fmt::Debug for BinaryCopyOutRow {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("BinaryCopyOutRow").field("types", &self.types).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two rows after a header with an extension, which the format allows.
    const COPY: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\x03ext\
        \0\x02\0\0\0\x04\0\0\0\x07\xff\xff\xff\xff\
        \0\x02\xff\xff\xff\xff\0\0\0\x02hi\xff\xff";

    type Pair = (Option<i32>, Option<String>);

    fn rows(parts: impl Iterator<Item = &'static [u8]>) -> Result<Vec<Pair>, Error> {
        let (mut arrived, mut rows) = (ArrivedRows::new(&[Type::INT4, Type::TEXT]), Vec::new());
        for part in parts {
            arrived.add(Bytes::from_static(part));
            while let Some(row) = arrived.next()? {
                rows.push((row.try_get(0)?, row.try_get(1)?));
            }
        }
        Ok(rows)
    }

    #[test]
    fn rows_may_be_cut_anywhere() {
        let all = [(Some(7), None), (None, Some("hi".to_owned()))];
        for length in 1..=COPY.len() {
            assert_eq!(rows(COPY.chunks(length)).expect("valid"), all, "parts of {length} bytes");
        }
    }

    #[test]
    fn wrong_headers_are_refused() {
        let wrong = |bytes: &'static [u8]| rows([bytes].into_iter()).expect_err("wrong").to_string();
        assert!(wrong(b"7\t\\N\n").contains("not in the binary format"));
        assert!(wrong(b"PGCOPY\n\xff\r\n\0\0\x01\0\0\0\0\0\0").contains("another version"));
    }
}
