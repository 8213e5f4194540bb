//! Messages that went in at one end come out at the other: with real brokers, each killed, stopped, restarted and cut off.
#![allow(missing_docs)]

mod brokers;
mod ends;
#[cfg(any(feature = "kafka", feature = "rabbitmq"))]
mod far;
#[cfg(any(feature = "kafka", feature = "rabbitmq"))]
mod faults;
#[path = "../../../tests/all/required.rs"]
mod required;
#[cfg(any(feature = "kafka", feature = "rabbitmq"))]
mod refused;
#[cfg(any(feature = "kafka", feature = "rabbitmq"))]
mod stage;
#[cfg(any(feature = "nats", feature = "redis"))]
mod stand;
#[cfg(any(feature = "nats", feature = "redis"))]
mod outward;
#[cfg(any(feature = "nats", feature = "redis"))]
mod inward;
mod refusals;
