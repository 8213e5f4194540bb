//! One-dimensional arrays in PostgreSQL's binary format.

use bytes::{BufMut, BytesMut};
use postgres_types::{FromSql, IsNull, Kind as TypeKind, ToSql, Type, to_sql_checked};

#[derive(Debug)]
pub(crate) struct Elements<'a> {
    pub element: u32,
    pub count: i32,
    pub nulls: bool,
    /// The encoded elements. Each element consists of a length and a value.
    pub values: &'a [u8],
}

impl Elements<'_> {
    pub fn write(&self, out: &mut BytesMut) {
        out.reserve(20 + self.values.len());
        out.put_i32(i32::from(self.count > 0)); // dimensions
        out.put_i32(i32::from(self.nulls));
        out.put_u32(self.element);
        if self.count > 0 {
            out.put_i32(self.count);
            out.put_i32(1); // lower bound
            out.put_slice(self.values);
        }
    }
}

impl ToSql for Elements<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        self.write(out);
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        matches!(ty.kind(), TypeKind::Array(_))
    }

    to_sql_checked!();
}

#[derive(Debug)]
pub(crate) struct Received<'a>(&'a [u8]);

impl<'a> FromSql<'a> for Received<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(raw))
    }

    fn accepts(ty: &Type) -> bool {
        matches!(ty.kind(), TypeKind::Array(_))
    }
}

impl ToSql for Received<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.put_slice(self.0);
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        matches!(ty.kind(), TypeKind::Array(_))
    }

    to_sql_checked!();
}

/// Returns the offset of the first byte after `count` elements. An element consists of a length,
/// which is -1 for null, and a value.
pub(crate) fn after(count: usize, elements: &[u8]) -> usize {
    let mut at = 0;
    for _ in 0..count {
        let Some(length) = elements.get(at..).and_then(|rest| rest.first_chunk()) else { break };
        at += 4 + usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0);
    }
    at
}

pub(crate) type BadArray = Box<dyn std::error::Error + Sync + Send>;

impl<'a> Received<'a> {
    pub fn of(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub fn bytes(&self) -> &'a [u8] {
        self.0
    }

    pub fn element(&self) -> Option<u32> {
        self.0.get(8..)?.first_chunk().map(|oid| u32::from_be_bytes(*oid))
    }

    /// Returns the elements. An array consists of a header of 12 bytes, 8 bytes per dimension, and
    /// then a length and a value per element.
    pub fn elements(&self) -> Result<Each<'a>, BadArray> {
        let number = |at: usize| -> Result<i32, BadArray> {
            let bytes = self.0.get(at..at + 4).ok_or("the array is truncated")?;
            Ok(i32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
        };
        let left = match number(0)? {
            0 => 0,
            1 => number(12)?,
            more => return Err(format!("a batch has one dimension, not {more}").into()),
        };
        Ok(Each { left, rest: self.0.get(20..).unwrap_or_default() })
    }
}

impl<'a> Received<'a> {
    /// Splits the elements, in order, into parts with these numbers of elements. If there are too
    /// few elements, the last parts are shorter or empty.
    pub fn parts(&self, counts: &[usize]) -> Result<Vec<Elements<'a>>, BadArray> {
        let Each { left, mut rest } = self.elements()?;
        let mut left = usize::try_from(left).unwrap_or_default();
        let (element, nulls) = (self.element().unwrap_or_default(), self.0.get(4..8) != Some(&[0; 4]));
        let part = |count: &usize| {
            let count = left.min(*count);
            let (values, behind) = rest.split_at_checked(after(count, rest)).ok_or("the array is truncated")?;
            (left, rest) = (left - count, behind);
            Ok(Elements { element, count: count as i32, nulls, values })
        };
        counts.iter().map(part).collect()
    }
}

/// An iterator over the elements of an array in the binary format. A null element is `None`.
#[derive(Debug)]
pub(crate) struct Each<'a> {
    pub left: i32,
    rest: &'a [u8],
}

impl<'a> Iterator for Each<'a> {
    type Item = Result<Option<&'a [u8]>, BadArray>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.left <= 0 {
            return None;
        }
        self.left -= 1;
        Some(self.element())
    }
}

impl<'a> Each<'a> {
    #[inline]
    fn element(&mut self) -> Result<Option<&'a [u8]>, BadArray> {
        let (length, rest) = self.rest.split_first_chunk::<4>().ok_or("the array is truncated")?;
        self.rest = rest;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else { return Ok(None) };
        let (value, rest) = rest.split_at_checked(length).ok_or("the array is truncated")?;
        self.rest = rest;
        Ok(Some(value))
    }
}
