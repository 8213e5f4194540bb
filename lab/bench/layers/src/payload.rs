use serde_json::value::RawValue;
use trunkline::{Binary, Json, Payload};
use trunkline_contender::Failure;

/// A payload that is made from a JSON text and can return it.
pub trait Text: Payload + Clone {
    /// The type of the queue's column.
    const TYPE: &str;
    fn of(text: String) -> Result<Self, Failure>;
    fn bytes(&self) -> &[u8];
}

/// The payload type that the peers also store.
pub type Document = Json<Box<RawValue>>;

/// The queue's default payload type, which the server does not parse.
pub type Bytes = Binary;

impl Text for Document {
    const TYPE: &str = "jsonb";

    fn of(text: String) -> Result<Self, Failure> {
        Ok(Json(RawValue::from_string(text)?))
    }

    fn bytes(&self) -> &[u8] {
        self.0.get().as_bytes()
    }
}

impl Text for Bytes {
    const TYPE: &str = "bytea";

    fn of(text: String) -> Result<Self, Failure> {
        Ok(Binary(text.into()))
    }

    fn bytes(&self) -> &[u8] {
        &self.0
    }
}

pub fn all<T: Text>(texts: Vec<String>) -> Result<Vec<T>, Failure> {
    texts.into_iter().map(T::of).collect()
}
