//! Binds and runs a prepared statement with one write for all bytes that are equal at each use.

use bytes::{BufMut, BytesMut};
use postgres_protocol::message::frontend;
use postgres_types::{BorrowToSql, IsNull, Type};

use super::WireError;

/// The Bind message after its parameters: one format, binary, for all columns. Then an Execute
/// message of the unnamed portal for all rows.
const AFTER: &[u8] = b"\x00\x01\x00\x01E\0\0\0\x09\0\0\0\0\0";
/// The number of bytes of `AFTER` that belong to the Bind message.
const OF_BIND: usize = 4;

/// The longest message that a server accepts (`PQ_LARGE_MESSAGE_LIMIT` in PostgreSQL's source).
const LONGEST: i32 = 0x3fff_fffe;

/// The Bind message of a statement before its parameters. Its length is filled in at each use.
#[derive(Debug)]
pub(super) struct BindHead(Vec<u8>);

impl BindHead {
    /// Returns `None` if the number of parameters does not fit into the message.
    pub fn new(statement: &str, parameters: usize) -> Option<Self> {
        let count = i16::try_from(parameters).ok()?;
        let mut head = b"B\0\0\0\0\0".to_vec(); // the length, and the unnamed portal
        head.extend_from_slice(statement.as_bytes());
        head.push(0);
        // Writes one format code for all parameters. Without parameters, none is allowed.
        match count {
            0 => head.put_i16(0),
            _ => head.extend_from_slice(b"\x00\x01\x00\x01"),
        }
        head.put_i16(count);
        Some(Self(head))
    }

    /// Writes a Bind and an Execute message. The number of parameters must be that of the
    /// statement.
    /// After an error, `out` contains a part of the messages.
    pub fn write<P: BorrowToSql>(&self, types: &[Type], parameters: &[P], out: &mut BytesMut) -> Result<(), WireError> {
        let start = out.len();
        out.reserve(self.0.len() + AFTER.len() + 16 * parameters.len());
        out.extend_from_slice(&self.0);
        for (parameter, ty) in parameters.iter().zip(types) {
            let at = out.len();
            out.put_i32(-1);
            if let IsNull::No = parameter.borrow_to_sql().to_sql_checked(ty, out).map_err(WireError::encode)? {
                let length = checked_length(out.len() - at - 4)?;
                out[at..at + 4].copy_from_slice(&length.to_be_bytes());
            }
        }
        out.extend_from_slice(AFTER);
        let length = out.len() - start - 1 - (AFTER.len() - OF_BIND);
        let length = checked_length(length)?;
        out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }
}

/// Writes a message that prepares a statement.
pub(super) fn parse(name: &str, text: &str, types: &[Type], out: &mut BytesMut) -> Result<(), WireError> {
    checked_length(text.len())?;
    frontend::parse(name, text, types.iter().map(Type::oid), out).map_err(WireError::encode)
}

/// Returns the length of a message. The server would end the connection after a longer one, and
/// with it the statements of all callers that share it.
pub(super) fn checked_length(length: usize) -> Result<i32, WireError> {
    match i32::try_from(length) {
        Ok(length @ ..=LONGEST) => Ok(length),
        _ => Err(WireError::encode("a statement or its parameters have more than 1 GiB")),
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use postgres_protocol::{IsNull, message::frontend};
    use postgres_types::{IsNull as TypesIsNull, ToSql, Type};

    use super::{BindHead, checked_length};

    /// Returns the same messages as `postgres-protocol` writes them.
    fn expected(types: &[Type], parameters: &[&(dyn ToSql + Sync)]) -> BytesMut {
        let mut out = BytesMut::new();
        let write = |(parameter, ty): (&&(dyn ToSql + Sync), &Type), out: &mut BytesMut| {
            Ok(match parameter.to_sql_checked(ty, out)? {
                TypesIsNull::Yes => IsNull::Yes,
                TypesIsNull::No => IsNull::No,
            })
        };
        let formats = (!parameters.is_empty()).then_some(1);
        frontend::bind("", "t12", formats, parameters.iter().zip(types), write, Some(1), &mut out)
            .unwrap_or_else(|_| panic!("encoded"));
        frontend::execute("", 0, &mut out).expect("encoded");
        out
    }

    #[test]
    fn messages_are_those_of_the_protocol() {
        let none = None::<i64>;
        let cases: [(&[Type], &[&(dyn ToSql + Sync)]); 4] = [
            (&[], &[]),
            (&[Type::INT8], &[&7_i64]),
            (&[Type::INT8, Type::TEXT, Type::BYTEA], &[&none, &"é", &&b""[..]]),
            (&[Type::INT8_ARRAY], &[&vec![1_i64; 1000]]),
        ];
        for (types, parameters) in cases {
            let head = BindHead::new("t12", types.len()).expect("few parameters");
            let mut out = BytesMut::from(&b"before"[..]);
            for _ in 0..2 {
                head.write(types, parameters, &mut out).expect("encoded");
            }
            let one = expected(types, parameters);
            assert_eq!(out, [&b"before"[..], &one, &one].concat(), "{types:?}");
        }
    }

    #[test]
    fn a_message_that_the_server_would_not_accept_is_refused() {
        assert_eq!(checked_length((1 << 30) - 2).expect("accepted"), (1 << 30) - 2);
        for length in [(1 << 30) - 1, 1 << 31, usize::MAX] {
            let error = checked_length(length).expect_err("refused").to_string();
            assert!(error.contains("1 GiB"), "{error}");
        }
    }

    #[test]
    fn a_value_of_another_type_is_refused() {
        let head = BindHead::new("t1", 1).expect("few parameters");
        let parameters: [&(dyn ToSql + Sync); 1] = [&"text"];
        head.write(&[Type::INT8], &parameters, &mut BytesMut::new()).expect_err("refused");
        assert!(BindHead::new("t1", 40_000).is_none());
    }
}
