//! Tools for operators of Trunkline: the doctor, the metrics and the web console. The library does
//! not depend on this crate.

mod schema;
mod reason;
pub mod doctor;
pub mod metrics;
pub mod web;
