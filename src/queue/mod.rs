//! The queue: one file for each verb, and the modules that the verbs use.

mod statements;
pub(crate) mod message;
pub(crate) mod observe;
pub(crate) mod floor;
pub(crate) mod batch;
pub(crate) mod wait;
pub(crate) mod admin;
pub(crate) mod handle;
mod compact;
pub(crate) mod verbs;
pub(crate) mod consumer;
pub mod testing;
