//! The outcomes of an enqueue with a unique key.

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Became {
    #[default]
    New,
    /// The message was not stored, because another message has its key.
    Duplicate,
    /// The message replaced another message.
    Replaced,
}
