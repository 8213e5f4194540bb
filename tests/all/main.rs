//! The promises of Trunkline, each shown on a real PostgreSQL.

mod fixture;
mod first;
mod contract;
mod crowd;
