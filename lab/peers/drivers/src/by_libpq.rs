//! Drives Postgres with libpq in pipeline mode, in the documented way. It uses prepared statements,
//! binary parameters and results, and one Sync, which makes all statements one transaction.
//!
//! libpq's calls block, so a turn occupies its thread and needs no runtime.

mod connection;
mod parameters;
mod answer;
mod pipelined;

use std::sync::Mutex;

use trunkline_drivers::{Driver, Failure, Place};

use self::{connection::Connection, pipelined::Pipelined};

pub async fn open(place: Place) -> Result<Box<dyn Driver>, Failure> {
    let mut connection = Connection::open(&place)?;
    pipelined::prepare(&mut connection)?;
    connection.enter_pipeline_mode()?;
    Ok(Box::new(Pipelined(Mutex::new(connection))))
}
