//! Messages that are sent at one end arrive at the other. The brokers are real, and are killed,
//! stopped, restarted and disconnected.
#![allow(missing_docs)]

#[allow(dead_code, clippy::maybe_infinite_iter, reason = "which brokers are tested, the features say")]
mod brokers;
#[allow(dead_code, reason = "which brokers are tested, the features say")]
mod ends;
#[cfg(any(feature = "kafka", feature = "rabbitmq"))]
mod far;
#[cfg(any(feature = "kafka", feature = "rabbitmq"))]
mod faults;
#[allow(dead_code)]
#[path = "../../rates/results.rs"]
mod rates;
#[cfg(any(feature = "kafka", feature = "rabbitmq"))]
mod refused;
#[cfg(any(feature = "kafka", feature = "rabbitmq"))]
mod stage;
#[allow(dead_code, reason = "which brokers are tested, the features say")]
mod stand;
#[cfg(any(feature = "nats", feature = "redis"))]
mod outward;
#[cfg(any(feature = "nats", feature = "redis"))]
mod inward;
#[cfg(any(feature = "kafka", feature = "nats", feature = "rabbitmq", feature = "redis"))]
mod carried;
#[cfg(any(feature = "kafka", feature = "nats", feature = "rabbitmq", feature = "redis"))]
mod exact;
#[cfg(feature = "redis")]
mod failover;
#[cfg(feature = "nats")]
mod gaps;
#[cfg(feature = "rabbitmq")]
mod overtaken;
#[cfg(feature = "nats")]
mod crowd;
#[cfg(any(feature = "kafka", feature = "nats", feature = "rabbitmq", feature = "redis"))]
mod rights;
#[cfg(any(feature = "kafka", feature = "rabbitmq"))]
mod distant;
#[cfg(any(feature = "kafka", feature = "nats", feature = "rabbitmq", feature = "redis"))]
#[allow(dead_code, reason = "which brokers are tested, the features say")]
mod tls;
#[cfg(any(feature = "kafka", feature = "nats", feature = "rabbitmq", feature = "redis"))]
mod large;
#[cfg(any(feature = "rabbitmq", feature = "redis"))]
mod narrow;
#[cfg(feature = "redis")]
mod heavy;
#[cfg(feature = "redis")]
mod lower_ids;
#[cfg(feature = "redis")]
mod stalled;
mod refusals;
mod stored;
mod results;
