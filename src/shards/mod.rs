//! Queues on several servers that share nothing. Each server is a shard with a complete queue of
//! the same name. This module only chooses the shard for each call, and continues without shards
//! that are down.

mod id;
mod health;
mod routing;
mod shard;
mod reach;
mod set;
mod queue;
mod enqueue;
mod verbs;
mod consumer;
mod ask;
mod direct;
mod stream;
mod worker;
mod left;
mod moving;
mod drain;
mod leave;

pub use self::{
    consumer::Consumer,
    id::{Id, MessageId, Sharded},
    left::Left,
    queue::Queue,
    routing::Routing,
    set::{Set, State},
    stream::Messages,
    verbs::Stats,
    worker::Worker,
};
