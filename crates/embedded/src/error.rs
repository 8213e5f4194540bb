use std::fmt::Display;
use std::io;
use std::path::Path;

/// An error. Its text says in a few sentences what went wrong, and what to do about it.
///
/// ```
/// # use trunkline_embedded::Cluster;
/// let error = Cluster::temporary().setting("no such name", "1").start().unwrap_err();
/// assert!(error.to_string().contains("no such name"));
/// ```
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct Error {
    text: String,
}

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }

    /// Builds an error from a phrase such as "cannot create", a path and a cause.
    pub(crate) fn at(doing: &str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::new(format!("{doing} {}: {cause}", path.display()))
    }

    pub(crate) fn because(doing: impl Display) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::new(format!("{doing}: {cause}"))
    }
}
