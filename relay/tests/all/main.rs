//! Messages that went in at one end come out at the other: with real brokers, each killed, stopped, restarted and cut off.
#![allow(missing_docs)]

mod brokers;
mod ends;
mod far;
mod faults;
#[path = "../../../tests/all/required.rs"]
mod required;
mod stage;
