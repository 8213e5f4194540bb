//! What the client says beside its answers: why it has no connection, above all.

use std::sync::{Mutex, PoisonError};

use rdkafka::{error::KafkaError, types::RDKafkaErrorCode};

#[derive(Debug, Default)]
pub(super) struct Heard(Mutex<Option<String>>);

impl Heard {
    pub fn note(&self, error: &KafkaError, reason: &str) {
        // Those that concern a message come with it.
        tracing::debug!(%error, reason, "Kafka's client says");
        // That all are away says less than why each is.
        if error.rdkafka_error_code() != Some(RDKafkaErrorCode::AllBrokersDown) {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason.to_owned());
        }
    }

    /// An error with what was heard last.
    pub fn with(&self, error: &KafkaError) -> String {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(reason) => format!("{error}: {reason}"),
            None => error.to_string(),
        }
    }
}
