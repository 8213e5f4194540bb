//! Checks destinations before a message is sent. For some wrong destinations a broker closes the
//! connection, and for others it reports no error.

use crate::template::shortened;

/// The maximum number of bytes per subject. By default a protocol line of NATS has at most 4,096
/// bytes, and it also contains the reply subject and the sizes.
const SUBJECT: usize = 3_900;
const TOPIC: usize = 249;
const ROUTING_KEY: usize = 255;

/// Checks a subject of NATS.
pub(super) fn subject(to: &str) -> Result<(), String> {
    let refused = |why: &str| Err(format!("the subject {} cannot be used: {why}", shortened(to)));
    if to.len() > SUBJECT {
        return refused(&format!("it has {} bytes, and at most {SUBJECT} fit", to.len()));
    }
    if to.split('.').any(str::is_empty) {
        return refused("it is empty, or has an empty token between its dots");
    }
    if to.contains(['*', '>']) {
        return refused("* and > are wildcards, which only subscriptions may use");
    }
    if to.contains(|one: char| one.is_control() || one.is_whitespace()) {
        return refused("it has white space or a control character");
    }
    let first = to.split('.').next().unwrap_or_default();
    // Accepts $KV and $O: buckets, which streams store. Other subjects that begin with $ belong to
    // the server's own interface.
    if first.starts_with('$') && !matches!(first, "$KV" | "$O") || first.starts_with("_INBOX") {
        return refused("subjects that begin with $ or _INBOX are reserved for the server");
    }
    Ok(())
}

/// Checks the name of a Kafka topic.
pub(super) fn topic(to: &str) -> Result<(), String> {
    let refused = |why: &str| Err(format!("the topic {} cannot be used: {why}", shortened(to)));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if to.is_empty() || to.len() > TOPIC {
        return refused(&format!("it has {} bytes; expected 1 to {TOPIC}", to.len()));
    }
    if !to.bytes().all(is_plain) || matches!(to, "." | "..") {
        return refused("a topic is made of ASCII letters, digits, dots, _ and -");
    }
    // Refuses topics in which brokers store their groups and transactions. They would read any
    // record there as one of their own.
    if to.starts_with("__") {
        return refused("topics that begin with __ are the brokers' own");
    }
    Ok(())
}

/// Checks a routing key of RabbitMQ.
pub(super) fn routing_key(to: &str) -> Result<(), String> {
    if to.len() > ROUTING_KEY {
        let bytes = to.len();
        return Err(format!("the routing key {} has {bytes} bytes; it can have at most 255 bytes", shortened(to)));
    }
    Ok(())
}

/// Checks a key of Redis.
pub(super) fn stream(to: &str) -> Result<(), String> {
    if to.is_empty() { Err("the stream's name is empty".to_owned()) } else { Ok(()) }
}
