//! The outcomes of an enqueue with a unique key.

/// What became of a message with a unique key, where its enqueue was Ok.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Became {
    #[default]
    New,
    /// It is not there: another is.
    Duplicate,
    /// It is there in the place of another.
    Replaced,
}
