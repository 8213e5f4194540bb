//! Where a message can never go, said before it is sent: a broker closes the connection for some of
//! it, and says nothing of the rest.

use crate::template::shortened;

/// A protocol line of NATS has 4,096 bytes at most, unless the server is set up otherwise; the
/// place for the answer and the sizes are in it, too.
const SUBJECT: usize = 3_900;
const TOPIC: usize = 249;
const ROUTING_KEY: usize = 255;

/// A subject of NATS.
pub(super) fn subject(to: &str) -> Result<(), String> {
    let refused = |why: &str| Err(format!("the subject {} cannot be used: {why}", shortened(to)));
    if to.len() > SUBJECT {
        return refused(&format!("it has {} bytes, and at most {SUBJECT} fit", to.len()));
    }
    if to.split('.').any(str::is_empty) {
        return refused("it is empty, or has an empty token between its dots");
    }
    if to.contains(['*', '>']) {
        return refused("* and > are wildcards, for those who subscribe");
    }
    if to.contains(|one: char| one.is_control() || one.is_whitespace()) {
        return refused("it has white space or a control character");
    }
    let first = to.split('.').next().unwrap_or_default();
    // $KV and $O are buckets, which streams store; what else begins so is the server's own
    // interface.
    if first.starts_with('$') && !matches!(first, "$KV" | "$O") || first.starts_with("_INBOX") {
        return refused("the server itself obeys what is sent there");
    }
    Ok(())
}

/// A topic of Kafka's.
pub(super) fn topic(to: &str) -> Result<(), String> {
    let refused = |why: &str| Err(format!("the topic {} cannot be used: {why}", shortened(to)));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if to.is_empty() || to.len() > TOPIC {
        return refused(&format!("it has {} bytes, and 1 to {TOPIC} are possible", to.len()));
    }
    if !to.bytes().all(is_plain) || matches!(to, "." | "..") {
        return refused("a topic is made of ASCII letters, digits, dots, _ and -");
    }
    // Its groups and transactions: what is written there, brokers read as their own.
    if to.starts_with("__") {
        return refused("topics that begin with __ are the brokers' own");
    }
    Ok(())
}

/// A routing key of RabbitMQ's.
pub(super) fn routing_key(to: &str) -> Result<(), String> {
    if to.len() > ROUTING_KEY {
        let bytes = to.len();
        return Err(format!("the routing key {} has {bytes} bytes; it can have at most 255 bytes", shortened(to)));
    }
    Ok(())
}

/// A key of Redis'.
pub(super) fn stream(to: &str) -> Result<(), String> {
    if to.is_empty() { Err("the stream's name is empty".to_owned()) } else { Ok(()) }
}
