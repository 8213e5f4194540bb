//! The meaning of Kafka's errors for a message. Only the error's code counts; the text is for
//! people.

use rdkafka::{error::KafkaError, types::RDKafkaErrorCode as Code};

use crate::sink::Outcome;

/// The outcome of a message, as far as the error's code determines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    Known(Outcome),
    /// Kafka reports this for a whole batch, even if only one message is too large.
    TooLarge(String),
    /// The answer comes from the client's cache; the topic may exist by now.
    NoTopic(String),
}

pub(super) fn fate(error: &KafkaError) -> Fate {
    let Some(code) = error.rdkafka_error_code() else { return Fate::Known(Outcome::RefusedForNow(error.to_string())) };
    let said = words(code);
    match code {
        Code::MessageSizeTooLarge | Code::MessageBatchTooLarge => Fate::TooLarge(said),
        Code::UnknownTopic | Code::UnknownPartition => Fate::NoTopic(said),
        _ if is_for_good(code) => Fate::Known(Outcome::RefusedForGood(said)),
        _ => Fate::Known(Outcome::RefusedForNow(said)),
    }
}

/// Returns true if a retry fails in the same way until the broker or the message changes.
fn is_for_good(code: Code) -> bool {
    matches!(
        code,
        Code::InvalidTopic
            | Code::TopicAuthorizationFailed
            | Code::ClusterAuthorizationFailed
            | Code::InvalidTimestamp
            | Code::PolicyViolation
            | Code::InvalidRecord
            | Code::UnsupportedForMessageFormat
    )
}

fn words(code: Code) -> String {
    match code {
        Code::UnknownTopic | Code::UnknownPartition => "there is no such topic".to_owned(),
        // Uses the names and the descriptions of the client's own codes.
        _ => format!("{code} ({code:?})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leader_that_moves_is_no_reason_to_give_up() {
        let of = |code| fate(&KafkaError::MessageProduction(code));
        for code in [
            Code::NotLeaderForPartition,
            Code::MessageTimedOut,
            Code::NotEnoughReplicas,
            Code::UnknownTopicOrPartition,
            Code::Fatal,
        ] {
            assert!(matches!(of(code), Fate::Known(Outcome::RefusedForNow(_))), "{code:?}");
        }
        assert!(matches!(of(Code::TopicAuthorizationFailed), Fate::Known(Outcome::RefusedForGood(_))));
        assert!(matches!(of(Code::MessageSizeTooLarge), Fate::TooLarge(_)));
        assert!(matches!(of(Code::UnknownTopic), Fate::NoTopic(_)));
    }
}
