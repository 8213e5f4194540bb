//! What an operator of Trunkline looks at. The library does not depend on it.

mod schema;
mod reason;
pub mod doctor;
pub mod metrics;
pub mod web;
