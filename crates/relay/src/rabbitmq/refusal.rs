//! The meaning of RabbitMQ's errors for the messages of a channel. Only the error's code counts;
//! the text is for people.

use lapin::{
    ErrorKind,
    protocol::{AMQPErrorKind, AMQPSoftError},
};

/// Returns true if the broker closed the channel because of one of its messages: the exchange does
/// not exist, permission is missing, or the message is too large.
pub(super) fn is_for_good(error: &lapin::Error) -> bool {
    let ErrorKind::ProtocolError(said) = error.kind() else { return false };
    let AMQPErrorKind::Soft(soft) = said.kind() else { return false };
    matches!(
        soft,
        AMQPSoftError::CONTENTTOOLARGE
            | AMQPSoftError::ACCESSREFUSED
            | AMQPSoftError::NOTFOUND
            | AMQPSoftError::PRECONDITIONFAILED
    )
}

/// Returns true if the user may not write to the exchange, or not with the message's routing key.
pub(super) fn is_forbidden(error: &lapin::Error) -> bool {
    let ErrorKind::ProtocolError(said) = error.kind() else { return false };
    matches!(said.kind(), AMQPErrorKind::Soft(AMQPSoftError::ACCESSREFUSED))
}

/// Returns true if the queue or the exchange does not exist.
pub(super) fn is_missing(error: &lapin::Error) -> bool {
    let ErrorKind::ProtocolError(said) = error.kind() else { return false };
    matches!(said.kind(), AMQPErrorKind::Soft(AMQPSoftError::NOTFOUND))
}

#[cfg(test)]
mod tests {
    use super::is_for_good;
    use lapin::{
        ErrorKind,
        protocol::{AMQPError, AMQPHardError, AMQPSoftError},
    };

    #[test]
    fn broker_shutdown_is_no_reason_to_give_up() {
        let of = |kind| is_for_good(&ErrorKind::ProtocolError(AMQPError::new(kind, "".into())).into());
        assert!(!of(AMQPHardError::CONNECTIONFORCED.into()));
        assert!(!of(AMQPSoftError::RESOURCELOCKED.into()));
        assert!(of(AMQPSoftError::NOTFOUND.into()));
        assert!(of(AMQPSoftError::PRECONDITIONFAILED.into()));
    }
}
