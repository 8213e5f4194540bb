//! The format of a message body: the bare payload, or a `CloudEvents` envelope around it.

use std::{fmt::Write, str::FromStr};

use base64::prelude::{BASE64_STANDARD, Engine};
use bytes::Bytes;
use serde_json::{Map, Value, json, value::RawValue};
use trunkline::Message;

use crate::{
    error::Error,
    outgoing::{CONTENT_TYPE, rfc3339},
    payload::Raw,
};

/// The format of a message body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Envelope {
    /// The payload, unchanged.
    #[default]
    None,
    /// `CloudEvents` 1.0 in structured JSON mode. The envelope has `id`, `source` (the queue),
    /// `type` (the metadata's `type`, or else the queue's name), `time`, `subject` (the key) and
    /// `data`. Other metadata become extensions if their names consist of letters and digits.
    CloudEvents,
}

impl FromStr for Envelope {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "none" => Ok(Self::None),
            "cloudevents" => Ok(Self::CloudEvents),
            _ => Err(Error::usage(format!("there is no envelope {text:?}: it is none or cloudevents"))),
        }
    }
}

/// The attribute names that `CloudEvents` defines.
const ATTRIBUTES: [&str; 9] =
    ["id", "source", "type", "specversion", "time", "subject", "data", "datacontenttype", "dataschema"];

impl Envelope {
    /// Returns the body and its media type. `payload` is the queue's column type.
    pub(crate) fn wrap(
        self,
        id: &str,
        queue: &str,
        payload: &str,
        message: &Message<Raw>,
    ) -> (Bytes, Option<&'static str>) {
        let is_json = matches!(payload, "json" | "jsonb");
        let body = &message.payload.0;
        if self == Self::None {
            return (body.clone(), is_json.then_some("application/json"));
        }
        let mut event = Map::new();
        event.insert("specversion".to_owned(), json!("1.0"));
        event.insert("id".to_owned(), json!(id));
        event.insert("source".to_owned(), json!(format!("trunkline:{queue}")));
        event.insert("type".to_owned(), json!(message.metadata.get("type").unwrap_or(queue)));
        event.insert("time".to_owned(), json!(rfc3339(message.enqueued_at)));
        if let Some(key) = &message.key {
            event.insert("subject".to_owned(), json!(&**key));
        }
        for (name, text) in message.metadata.iter() {
            let is_plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
            if is_plain && !ATTRIBUTES.contains(&name) {
                event.insert(name.to_owned(), json!(text));
            }
        }
        let text = std::str::from_utf8(body).ok();
        let json = text.filter(|_| is_json).and_then(|text| serde_json::from_str::<&RawValue>(text).ok());
        let (name, data) = match (json, text) {
            (Some(raw), _) => ("data", raw.get().to_owned()),
            (None, Some(text)) => ("data", Value::from(text).to_string()),
            (None, None) => ("data_base64", Value::from(BASE64_STANDARD.encode(body)).to_string()),
        };
        let known = match name {
            "data_base64" => "application/octet-stream",
            _ if is_json => "application/json",
            _ => "text/plain",
        };
        let datacontenttype = message.metadata.get(CONTENT_TYPE).unwrap_or(known);
        event.insert("datacontenttype".to_owned(), json!(datacontenttype));
        let mut whole = Value::Object(event).to_string();
        whole.pop();
        let _ = write!(whole, ",\"{name}\":{data}}}"); // inserted unparsed, so that numbers keep their digits
        (whole.into(), Some("application/cloudevents+json"))
    }
}
