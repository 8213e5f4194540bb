//! Metadata on the wire: elements of a `jsonb[]`, parallel to the array of payloads.

use bytes::{BufMut, BytesMut};
use postgres_types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use super::{MAX_METADATA, Metadata};
use crate::{
    error::{Error, Kind, Result},
    postgres::array::{Each, Elements, Received, after},
};

type BoxError = Box<dyn std::error::Error + Sync + Send>;

/// The first byte of a `jsonb` on the wire.
const VERSION: u8 = 1;

impl Metadata {
    /// Appends one element: its length and its value.
    pub(crate) fn encode(&self, out: &mut BytesMut) -> Result<()> {
        let start = out.len();
        out.put_i32(0);
        let failed =
            |cause| Error::new(Kind::Encode { rust: std::any::type_name::<Self>(), column: "jsonb".to_owned(), cause });
        self.write(out).map_err(failed)?;
        let length = (out.len() - start - 4) as i32; // bounded by `write`
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }

    fn write(&self, out: &mut BytesMut) -> Result<(), BoxError> {
        if let Some((name, _)) = self.iter().find(|(name, text)| name.contains('\0') || text.contains('\0')) {
            return Err(format!("{name:?} has a NUL character, which Postgres cannot store").into());
        }
        let start = out.len();
        out.put_u8(VERSION);
        serde_json::to_writer(out.writer(), self)?;
        match out.len() - start - 1 {
            bytes if bytes > MAX_METADATA => {
                Err(format!("{bytes} bytes are too many: at most {MAX_METADATA}; put it into the payload").into())
            }
            _ => Ok(()),
        }
    }

    /// Reads a `jsonb`. Other programs may store a value that is not an object; it is read as empty
    /// metadata, so that the message can still be delivered.
    pub(crate) fn read(raw: &[u8]) -> Self {
        serde_json::from_slice(raw.get(1..).unwrap_or_default()).unwrap_or_default()
    }

    /// Writes JSON as a `jsonb`, which [`Metadata::read`] reads.
    pub(crate) fn raw(json: &[u8]) -> Vec<u8> {
        [&[VERSION], json].concat()
    }
}

impl ToSql for Metadata {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, BoxError> {
        self.write(out).map(|()| IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::JSONB
    }

    to_sql_checked!();
}

impl FromSql<'_> for Metadata {
    fn from_sql(_: &Type, raw: &[u8]) -> Result<Self, BoxError> {
        Ok(Self::read(raw))
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::JSONB
    }
}

/// The metadata of an outgoing batch. The list ends with the last message that has metadata;
/// earlier messages without metadata are null.
#[derive(Debug, Default)]
pub(crate) struct Stamped {
    count: usize,
    elements: BytesMut,
}

impl Stamped {
    /// Adds the element of the message at this position. Positions must increase.
    pub fn push(&mut self, place: usize, element: &[u8]) {
        for _ in self.count..place {
            self.elements.put_i32(-1);
        }
        self.elements.extend_from_slice(element);
        self.count = place + 1;
    }

    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// Appends nulls until there are `messages` elements, for a statement that needs one element
    /// per message. Does nothing if no message has metadata.
    pub fn whole(&mut self, messages: usize) -> Beside<'_> {
        if self.count > 0 && self.count < messages {
            let last = messages - 1;
            self.push(last, &(-1_i32).to_be_bytes());
        }
        self.all()
    }

    pub fn all(&self) -> Beside<'_> {
        Beside { count: self.count, elements: &self.elements }
    }
}

/// The metadata of a batch, or of a part of it, as a parameter. Empty metadata is null.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Beside<'a> {
    count: usize,
    elements: &'a [u8],
}

impl Beside<'_> {
    pub fn is_empty(self) -> bool {
        self.count == 0
    }

    /// Splits the metadata before the message at this position.
    pub fn halves(self, place: usize) -> (Self, Self) {
        let left = place.min(self.count);
        let (one, two) = self.elements.split_at(after(left, self.elements));
        (Self { count: left, elements: one }, Self { count: self.count - left, elements: two })
    }
}

impl ToSql for Beside<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, BoxError> {
        if self.is_empty() {
            return Ok(IsNull::Yes);
        }
        let (element, count) = (Type::JSONB.oid(), self.count as i32);
        Elements { element, count, nulls: true, values: self.elements }.to_sql(ty, out)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::JSONB_ARRAY
    }

    to_sql_checked!();
}

/// The metadata of a received batch, read message by message. Messages beyond the end of the array
/// have empty metadata.
pub(crate) struct Carried<'a>(Option<Each<'a>>);

impl<'a> Carried<'a> {
    pub fn of(column: Option<Received<'a>>) -> Self {
        Self(column.and_then(|array| array.elements().ok()))
    }

    pub fn next(&mut self) -> Metadata {
        self.next_raw().map(Metadata::read).unwrap_or_default()
    }

    /// Returns the metadata of the next message as it was received.
    pub fn next_raw(&mut self) -> Option<&'a [u8]> {
        self.0.as_mut()?.next()?.ok()? // nearly always, a batch has no metadata
    }
}
