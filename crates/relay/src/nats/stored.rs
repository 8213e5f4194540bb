//! A message as the stream stores it. Its headers may be any bytes.

use async_nats::jetstream::{Context, ErrorCode, response::Response};
use base64::prelude::{BASE64_STANDARD, Engine};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;

use crate::header::{Header, Value};

pub(super) struct Stored {
    pub subject: String,
    pub sequence: u64,
    pub body: Bytes,
    headers: Vec<u8>,
}

#[derive(Deserialize)]
struct Said {
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    subject: String,
    seq: u64,
    #[serde(default)]
    hdrs: String,
    #[serde(default)]
    data: String,
}

/// Returns the first message at or after a sequence number, or `None`. A filter that is not empty
/// restricts the search to its subjects.
pub(super) async fn next(
    context: &Context,
    stream: &str,
    from: u64,
    filter: &str,
) -> Result<Option<Stored>, Box<dyn std::error::Error + Send + Sync>> {
    let subject = if filter.is_empty() { ">" } else { filter };
    let question = json!({ "seq": from, "next_by_subj": subject });
    let message = match context.request(format!("STREAM.MSG.GET.{stream}"), &question).await? {
        Response::Ok(Said { message }) => message,
        Response::Err { error } if error.error_code() == ErrorCode::NO_MESSAGE_FOUND => return Ok(None),
        Response::Err { error } => return Err(error.into()),
    };
    let (headers, body) = (BASE64_STANDARD.decode(message.hdrs)?, BASE64_STANDARD.decode(message.data)?);
    Ok(Some(Stored { subject: message.subject, sequence: message.seq, body: body.into(), headers }))
}

impl Stored {
    /// Parses the lines after the first one into names and values, separated by a colon.
    pub fn headers(&self) -> Vec<Header<'_>> {
        let lines = self.headers.split(|byte| *byte == b'\n').skip(1);
        let lines = lines.filter_map(|line| Some((line, line.iter().position(|byte| *byte == b':')?)));
        lines
            .map(|(line, colon)| Header {
                name: line[..colon].into(),
                value: Value::of(line[colon + 1..].trim_ascii()),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_byte_by_byte() {
        let headers = b"NATS/1.0\r\na: 1\r\nb b:\xff \r\nc:\r\n\r\n".to_vec();
        let stored = Stored { subject: "s".to_owned(), sequence: 1, body: Bytes::new(), headers };
        let bytes = Header { name: b"b b"[..].into(), value: Value::Bytes(b"\xff"[..].into()) };
        assert_eq!(stored.headers(), [Header::text("a", "1"), bytes, Header::text("c", "")]);
    }
}
