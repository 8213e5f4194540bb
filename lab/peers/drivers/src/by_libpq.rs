//! libpq in pipeline mode, as its documentation says: prepared statements, binary both ways, one
//! Sync for all, which is one transaction.
//!
//! Its calls block, so a turn keeps its thread, and no runtime is in its way.

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
