//! Errors that the client reports outside of its answers. Usually they are the reason why there is
//! no connection.

use std::sync::{Mutex, PoisonError};

use rdkafka::{error::KafkaError, types::RDKafkaErrorCode};

#[derive(Debug, Default)]
pub(super) struct Heard(Mutex<Option<String>>);

impl Heard {
    pub fn note(&self, error: &KafkaError, reason: &str) {
        // Only logs the error here: errors that concern a message are reported with the message.
        tracing::debug!(%error, reason, "Kafka client error");
        // Prefers the error of a single broker, which is more specific than the error that all
        // brokers are down.
        if error.rdkafka_error_code() != Some(RDKafkaErrorCode::AllBrokersDown) {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason.to_owned());
        }
    }

    /// Returns the error's text with the last reported reason.
    pub fn with(&self, error: &KafkaError) -> String {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(reason) => format!("{error}: {reason}"),
            None => error.to_string(),
        }
    }
}
