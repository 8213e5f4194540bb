//! Copies of rows into the database in the binary format.

use std::pin::Pin;

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::SinkExt;
use postgres_types::{BorrowToSql, IsNull, ToSql, Type};

use super::{binary_out::MAGIC, copy_in::CopyInSink, failure::Error};
use crate::postgres::wire::WireError;

/// The number of bytes that are collected before they are sent.
const GATHERED: usize = 4 << 10;

/// A writer that encodes rows for a [`CopyInSink`] of a `copy … from stdin binary`. If the writer
/// is dropped before [`BinaryCopyInWriter::finish`], the copy is aborted.
#[derive(Debug)]
pub struct BinaryCopyInWriter {
    sink: CopyInSink<Bytes>,
    types: Vec<Type>,
    gathered: BytesMut,
}

impl BinaryCopyInWriter {
    /// Creates a writer of rows with these types.
    #[must_use]
    pub fn new(sink: CopyInSink<Bytes>, types: &[Type]) -> Self {
        let mut gathered = BytesMut::from(MAGIC);
        gathered.put_i32(0); // no flags
        gathered.put_i32(0); // no extension
        Self { sink, types: types.to_vec(), gathered }
    }

    /// Writes a row. If a value cannot be encoded, no part of the row is written.
    ///
    /// # Errors
    /// A value does not fit its type, or the connection broke.
    ///
    /// # Panics
    /// Panics if the number of values differs from the number of types.
    pub async fn write(self: Pin<&mut Self>, values: &[&(dyn ToSql + Sync)]) -> Result<(), Error> {
        self.write_raw(values.iter().copied()).await
    }

    /// Writes a row like [`BinaryCopyInWriter::write`]. The values come from an iterator of values
    /// or references.
    ///
    /// # Errors
    /// The errors of [`BinaryCopyInWriter::write`].
    ///
    /// # Panics
    /// Panics if the number of values differs from the number of types.
    pub async fn write_raw<P, I>(self: Pin<&mut Self>, values: I) -> Result<(), Error>
    where
        P: BorrowToSql,
        I: IntoIterator<Item = P>,
        I::IntoIter: ExactSizeIterator,
    {
        let this = self.get_mut();
        let start = this.gathered.len();
        if let Err(error) = push(&mut this.gathered, &this.types, values.into_iter()) {
            this.gathered.truncate(start);
            return Err(error.into());
        }
        if this.gathered.len() > GATHERED {
            this.sink.send(this.gathered.split().freeze()).await?;
        }
        Ok(())
    }

    /// Ends the copy, and returns the number of rows.
    ///
    /// # Errors
    /// The server rejects the rows, or the connection broke.
    pub async fn finish(self: Pin<&mut Self>) -> Result<u64, Error> {
        let this = self.get_mut();
        this.gathered.put_i16(-1);
        this.sink.send(this.gathered.split().freeze()).await?;
        Pin::new(&mut this.sink).finish().await
    }
}

fn push<P: BorrowToSql>(
    out: &mut BytesMut,
    types: &[Type],
    values: impl ExactSizeIterator<Item = P>,
) -> Result<(), WireError> {
    assert!(values.len() == types.len(), "expected {} values but got {}", types.len(), values.len());
    out.put_i16(i16::try_from(types.len()).map_err(WireError::encode)?);
    for (value, ty) in values.zip(types) {
        let start = out.len();
        out.put_i32(-1);
        if let IsNull::No = value.borrow_to_sql().to_sql_checked(ty, out).map_err(WireError::encode)? {
            let length = i32::try_from(out.len() - start - 4).map_err(WireError::encode)?;
            out[start..start + 4].copy_from_slice(&length.to_be_bytes());
        }
    }
    Ok(())
}
