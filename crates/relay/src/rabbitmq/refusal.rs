//! What an error of RabbitMQ's means for the messages of a channel. By its code: texts are for
//! people.

use lapin::{
    ErrorKind,
    protocol::{AMQPErrorKind, AMQPSoftError},
};

/// Whether the broker closed the channel for what one of its messages is: no such exchange, no
/// permission, too large.
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

/// Whether it is for something that is not there.
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
    fn a_broker_that_shuts_down_is_no_reason_to_give_up() {
        let of = |kind| is_for_good(&ErrorKind::ProtocolError(AMQPError::new(kind, "".into())).into());
        assert!(!of(AMQPHardError::CONNECTIONFORCED.into()));
        assert!(!of(AMQPSoftError::RESOURCELOCKED.into()));
        assert!(of(AMQPSoftError::NOTFOUND.into()));
        assert!(of(AMQPSoftError::PRECONDITIONFAILED.into()));
    }
}
