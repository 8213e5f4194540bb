//! Set: a queue of one name on several servers that share nothing. Each shard is a whole
//! queue; here is only which one, and what becomes of the others while one is away.

pub(crate) mod id;
mod health;
pub(crate) mod choose;
mod shard;
mod reach;
pub(crate) mod set;
pub(crate) mod queue;
pub(crate) mod enqueue;
pub(crate) mod verbs;
pub(crate) mod consumer;
mod hand_over;
pub(crate) mod stream;
pub(crate) mod worker;
pub(crate) mod left;
mod moving;
pub(crate) mod drain;
mod leave;
