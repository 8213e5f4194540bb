//! The promises of Trunkline, each shown on a real PostgreSQL.

mod fixture;
mod contract;
mod crowd;
mod examples;
mod late;
mod leases;
mod dead;
mod floor;
mod plans;
mod hand_over;
mod metadata;
mod model;
mod crash;
mod chaos;
mod migrate;
mod bad_input;
mod payloads;
mod statements;
mod transactions;
mod sql_functions;
mod house;
mod idle;
mod tls;
mod worker;
mod traces;
mod observability;
