//! The text and the sources of an error.

use std::fmt;

use super::{Error, Kind};

impl fmt::Debug for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, out)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&*self.0, out)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &*self.0 {
            // Returns the work's error itself and not the `Arc`, so that the caller can downcast
            // it.
            Kind::Work { cause, .. } => cause.as_deref().map(|cause| cause as &(dyn std::error::Error + 'static)),
            kind => kind.source(),
        }
    }
}
