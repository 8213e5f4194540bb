use bytes::Bytes;

/// A message of the server: its kind, and its body.
pub(crate) type Frame<'a> = (u8, &'a [u8]);

/// The whole messages at the front of some bytes, one after another.
pub(crate) fn frames(mut bytes: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    std::iter::from_fn(move || {
        let length = length(bytes)?;
        let (frame, rest) = bytes.split_at_checked(length)?;
        bytes = rest;
        Some((frame[0], &frame[5..]))
    })
}

/// As [`frames`], with bodies that share the bytes.
pub(crate) fn owned(bytes: &Bytes) -> impl Iterator<Item = (u8, Bytes)> + '_ {
    let mut rest = bytes.clone();
    std::iter::from_fn(move || {
        let length = length(&rest).filter(|length| *length <= rest.len())?;
        let frame = rest.split_to(length);
        Some((frame[0], frame.slice(5..)))
    })
}

/// How long the message at the front is, its kind and length included, as far as that was read. A length below the shortest is taken for
/// the shortest: the driver has refused it.
pub(crate) fn length(bytes: &[u8]) -> Option<usize> {
    let head = bytes.first_chunk::<5>()?;
    Some((u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize).max(4) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_messages_are_cut_and_a_part_is_left() {
        let bytes = b"C\0\0\0\x06abZ\0\0\0\x05ID\0\0\0\x09ab";
        let cut: Vec<_> = frames(bytes).collect();
        assert_eq!(cut, [(b'C', &b"ab"[..]), (b'Z', &b"I"[..])]);
        let shared: Vec<_> = owned(&Bytes::from_static(bytes)).map(|(kind, body)| (kind, body.to_vec())).collect();
        assert_eq!(shared, [(b'C', b"ab".to_vec()), (b'Z', b"I".to_vec())]);
        assert_eq!(frames(b"").count() + frames(b"Z\0\0").count(), 0);
    }
}
