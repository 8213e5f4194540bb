//! Tests the promises of the benchmark suite with the program itself on a real PostgreSQL.

mod fixture;
mod fsync;
mod stripes;
mod processes;
mod rows;
mod layers;
mod settings;
mod absent;
mod publication;
