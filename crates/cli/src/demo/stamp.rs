//! The payload of the demo: the message's number and the time at which it was enqueued.

use bytes::{BufMut, BytesMut};
use postgres_types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

/// The minimum size in bytes: a number and a time.
pub const LEAST: usize = 16;

/// A payload of a given size: a number, the microseconds since the start, and padding. It is
/// decoded from the received batch without a copy. Any program's payload type can do the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    pub number: u64,
    pub micros: u64,
    pub bytes: usize,
}

impl ToSql for Stamp {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.put_u64(self.number);
        out.put_u64(self.micros);
        out.put_bytes(self.number as u8, self.bytes - LEAST);
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::BYTEA
    }

    to_sql_checked!();
}

impl FromSql<'_> for Stamp {
    fn from_sql(_: &Type, raw: &[u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        let (number, rest) = raw.split_first_chunk().ok_or("a payload of the demo has a number")?;
        let (micros, filling) = rest.split_first_chunk().ok_or("a payload of the demo has a time")?;
        let number = u64::from_be_bytes(*number);
        if filling.iter().any(|byte| *byte != number as u8) {
            return Err("the payload is not what was enqueued".into());
        }
        Ok(Self { number, micros: u64::from_be_bytes(*micros), bytes: raw.len() })
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::BYTEA
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out() {
        let stamp = Stamp { number: 700, micros: 12, bytes: 100 };
        let mut out = BytesMut::new();
        assert!(matches!(stamp.to_sql(&Type::BYTEA, &mut out), Ok(IsNull::No)));
        assert_eq!(out.len(), 100);
        assert_eq!(Stamp::from_sql(&Type::BYTEA, &out).ok(), Some(stamp));
        out[50] ^= 1;
        assert!(Stamp::from_sql(&Type::BYTEA, &out).is_err());
    }
}
