//! Functions that run the user's code and catch its panics. A panic affects only one message.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Runs the user's code. If it panics, returns the text of the panic.
pub(crate) fn caught<R>(work: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(text_of)
}

/// Returns the text of a panic. The panic's payload may itself panic when it is dropped, so this
/// function also catches that second panic.
pub(crate) fn text_of(panic: Box<dyn Any + Send>) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "not with a text".to_owned());
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(again);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::caught;

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }

    #[test]
    fn a_panic_is_its_text_whatever_it_carries() {
        assert_eq!(caught(|| 7), Ok(7));
        assert_eq!(caught(|| panic!("with a text")), Err::<(), _>("with a text".to_owned()));
        assert_eq!(caught(|| panic!("with {}", 7)), Err::<(), _>("with 7".to_owned()));
        assert_eq!(caught(|| std::panic::panic_any(Bomb)), Err::<(), _>("not with a text".to_owned()));
    }
}
