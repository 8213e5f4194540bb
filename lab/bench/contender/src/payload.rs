use std::{
    cell::Cell,
    fmt::{self, Write},
    sync::LazyLock,
    time::{SystemTime, UNIX_EPOCH},
};

/// Characters without a pattern. The server would compress a pattern, especially in a queue that
/// stores many messages together. Each payload uses a different part of these characters.
static PAD: LazyLock<String> = LazyLock::new(|| {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    (0..1 << 20).map(|_| char::from(LETTERS[random() as usize % LETTERS.len()])).collect()
});

/// Returns a random number by xorshift64*, with one state per thread.
pub(crate) fn random() -> u64 {
    thread_local! {
        static STATE: Cell<u64> = Cell::new(now() | 1);
    }
    let mut state = STATE.get();
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    STATE.set(state);
    state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
}

/// Returns `n` payloads of `bytes` bytes that are due now.
#[must_use]
pub fn payloads(n: usize, bytes: usize) -> Vec<String> {
    let at = now();
    (0..n).map(|_| payload(at, bytes)).collect()
}

/// Returns a JSON object of exactly `bytes` bytes (at least 36), with the time at which it is due.
pub(crate) fn payload(at: u64, bytes: usize) -> String {
    padded(format_args!("\"at\":{at}"), bytes)
}

/// Returns the same object as [`payload`], with its key and its number among the messages of that
/// key.
pub(crate) fn keyed(at: u64, key: usize, nr: u64, bytes: usize) -> String {
    padded(format_args!("\"at\":{at},\"key\":{key},\"nr\":{nr}"), bytes)
}

fn padded(members: fmt::Arguments<'_>, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes.max(64));
    let _ = write!(text, "{{{members},\"pad\":\""); // writing to a string cannot fail
    let mut left = bytes.saturating_sub(text.len() + 2);
    while left > 0 {
        let at = random() as usize % PAD.len();
        let piece = &PAD[at..PAD.len().min(at + left)];
        text.push_str(piece);
        left -= piece.len();
    }
    text.push_str("\"}");
    text
}

/// Returns the current time in microseconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

pub(crate) fn sent_at(payload: &[u8]) -> Option<u64> {
    number(payload, b"\"at\":")
}

pub(crate) fn place(payload: &[u8]) -> Option<(usize, u64)> {
    Some((number(payload, b"\"key\":")? as usize, number(payload, b"\"nr\":")?))
}

/// Parses the number that follows a name. The database may have added spaces to the payload and
/// changed the order of its members.
fn number(payload: &[u8], name: &[u8]) -> Option<u64> {
    let at = payload.windows(name.len()).position(|part| part == name)? + name.len();
    let digits = payload[at..].iter().skip_while(|byte| **byte == b' ').take_while(|byte| byte.is_ascii_digit());
    digits.map(|digit| u64::from(digit - b'0')).reduce(|value, digit| value * 10 + digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_has_its_size_and_due_time() {
        let at = now();
        for bytes in [36, 100, 10_000] {
            let text = payload(at, bytes);
            assert_eq!((text.len(), sent_at(text.as_bytes())), (bytes, Some(at)));
        }
        assert_eq!(sent_at(br#"{"pad": "x", "at": 17}"#), Some(17));
        assert_eq!(sent_at(b"{}"), None);
        let text = keyed(at, 17, 4, 100);
        assert_eq!((text.len(), sent_at(text.as_bytes()), place(text.as_bytes())), (100, Some(at), Some((17, 4))));
    }
}
