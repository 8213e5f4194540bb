//! Functions that read untrusted bytes. The targets in `lab/tools/fuzz/` and the property tests
//! below call them.

use bytes::BytesMut;
use postgres_types::{FromSql, ToSql, Type};

use crate::{
    postgres::{array::Received, target::Target},
    queue::message::{
        metadata::{Carried, Metadata, Stamped},
        payload::PayloadColumn,
    },
};

/// Reads bytes as messages from a server. The first two bytes choose the number of statements and
/// the position at which the rest is split.
pub fn server_says(bytes: &[u8]) {
    crate::postgres::wire::server_says(bytes);
}

/// Reads the bytes as an array, which must not panic. Also checks that an array that this library
/// writes is read back unchanged.
pub fn array(bytes: &[u8]) {
    let received = Received::from_sql(&Type::BYTEA_ARRAY, bytes).expect("nothing is looked at yet");
    for array in [Type::BYTEA_ARRAY, Type::INT8_ARRAY, Type::TEXT_ARRAY] {
        let column = PayloadColumn::new(array).expect("an array");
        let _ = column.decode_all::<Vec<u8>>("q", 1, &received);
        let _ = column.decode_all::<i64>("q", 1, &received);
        let _ = column.decode_all::<String>("q", i64::MAX, &received);
    }
    let column = PayloadColumn::new(Type::BYTEA_ARRAY).expect("an array");
    let payloads: Vec<Vec<u8>> = bytes.split(|byte| *byte == b',').map(<[u8]>::to_vec).collect();
    let (mut elements, mut sent) = (BytesMut::new(), BytesMut::new());
    for payload in &payloads {
        column.encode(payload, &mut elements).expect("it fits");
    }
    column.array(payloads.len(), &elements).to_sql(&column.array, &mut sent).expect("written");
    let received = Received::from_sql(&column.array, &sent).expect("nothing is looked at yet");
    let read = column.decode_all::<Vec<u8>>("q", 1, &received).expect("what was written is read");
    assert!(read.into_iter().map(|(_, payload)| payload).eq(payloads), "another payload");
}

/// Reads the bytes as metadata. Malformed metadata counts as empty. Also checks that metadata that
/// this library writes is read back unchanged, and for the right message.
pub fn metadata(bytes: &[u8]) {
    let _ = Metadata::from_sql(&Type::JSONB, bytes);
    let mut carried = Carried::of(Received::from_sql(&Type::JSONB_ARRAY, bytes).ok());
    for _ in 0..4 {
        let _ = carried.next();
    }
    let text = String::from_utf8_lossy(bytes);
    let each = text.split(';').map(|part| {
        let pairs = part.split(',').filter_map(|pair| pair.split_once('='));
        pairs.fold(Metadata::new(), |metadata, (name, text)| metadata.with(name, text))
    });
    let (mut stamped, mut wanted) = (Stamped::default(), Vec::new());
    for (place, metadata) in each.enumerate() {
        let mut element = BytesMut::new();
        let written = metadata.encode(&mut element).is_ok() && !metadata.is_empty();
        if written {
            stamped.push(place, &element);
        }
        wanted.push(if written { metadata } else { Metadata::new() });
    }
    for at in 0..=wanted.len() {
        let (left, right) = stamped.all().halves(at);
        for (beside, wanted) in [(left, &wanted[..at]), (right, &wanted[at..])] {
            let mut sent = BytesMut::new();
            beside.to_sql(&Type::JSONB_ARRAY, &mut sent).expect("written");
            let column = (!beside.is_empty()).then(|| Received::from_sql(&Type::JSONB_ARRAY, &sent).expect("an array"));
            let mut carried = Carried::of(column);
            assert!(wanted.iter().all(|metadata| carried.next() == *metadata), "another's metadata");
        }
    }
}

/// Reads the bytes as a connection string. Checks that a connection string that requires TLS never
/// leads to a connection without TLS.
pub fn connection_string(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = Target::parse_in(text, |_| None);
    if let Ok(target) = Target::parse_in(&format!("sslmode=require {text}"), |_| None)
        && !text.starts_with("postgres")
    {
        use tokio_postgres::config::{Host, SslMode};
        let on_socket = target.config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)));
        assert!(target.config.get_ssl_mode() == SslMode::Require || on_socket, "TLS was turned off: {text:?}");
        assert!(!on_socket || target.config.get_hostaddrs().is_empty(), "an address without TLS: {text:?}");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    /// Generates byte strings from parts of the protocol and of the other inputs.
    fn pieces() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            Just(b"D\0\0\0\x0b\0\x01\0\0\0\x01a".to_vec()),
            Just(b"C\0\0\0\x0dSELECT 1\0".to_vec()),
            Just(b"Z\0\0\0\x05I".to_vec()),
            Just(b"E\0\0\0\x0dC22012\0\0".to_vec()),
            Just(b"\0\0\0\x01\0\0\0\0\0\0\0\x11\0\0\0\x02\0\0\0\x01".to_vec()),
            Just(b"\0\0\0\x03abc".to_vec()),
            Just(b"\xff\xff\xff\xff".to_vec()),
            Just(b"\x01{\"a\":\"b\"}".to_vec()),
            Just(b"a=b,c=d;".to_vec()),
            Just(b" sslmode='".to_vec()),
            Just(b"host=/ hostaddr=1.2.3.4 ".to_vec()),
            proptest::collection::vec(any::<u8>(), 0..12),
        ];
        proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    /// Inputs that failed in earlier runs of these targets, and whose defects have been fixed.
    #[test]
    fn earlier_findings_stay_fixed() {
        super::array(b""); // `array` also passes the maximum id, which overflowed
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn a_server_may_say_anything(bytes in pieces()) {
            super::server_says(&bytes);
        }

        #[test]
        fn an_array_is_read_or_refused(bytes in pieces()) {
            super::array(&bytes);
        }

        #[test]
        fn metadata_is_its_own_messages(bytes in pieces()) {
            super::metadata(&bytes);
        }

        #[test]
        fn no_connection_string_turns_tls_off(bytes in pieces()) {
            super::connection_string(&bytes);
        }
    }
}
