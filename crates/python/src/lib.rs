//! The native module of the Python package: a few classes around the Rust library. The package's
//! Python code is in `python/trunkline/`.

mod runtime;
mod error;
mod answer;
mod bridge;
mod reply;
mod event;
mod logs;
mod raw;
mod message;
mod draft;
mod beginning;
mod ending;
mod offer;
mod pages;
mod depth;
mod settings;
mod db;
mod schedule;
mod queue;
mod by_id;
mod consumer;
mod delivery;
mod inbox;
mod worker;
mod embedded;

use pyo3::prelude::*;

#[pymodule]
mod _trunkline {
    #[pymodule_export]
    use super::{
        bridge::{Bridge, Call},
        consumer::Consumer,
        db::{Db, schema_of},
        delivery::Delivery,
        depth::depth,
        draft::Draft,
        embedded::{Cluster, test_database},
        logs::{begin_logs, end_logs, log_levels, next_logs, test_logs},
        message::{Lease, Message},
        offer::Offer,
        queue::Queue,
        runtime::Exit,
        worker::Station,
    };
}
