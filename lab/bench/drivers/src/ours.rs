//! Drives Postgres with Trunkline's own driver.

mod pipelined;
mod arrays;
mod transfers;

use trunkline::Db;

pub use self::{arrays::Arrays, pipelined::Pipelined};
use crate::{Failure, driver::Driver, place::Place};

pub async fn pipelined(place: Place) -> Result<Box<dyn Driver>, Failure> {
    Ok(Box::new(Pipelined(Db::connect(&place.words()).await?)))
}

pub async fn arrays(place: Place) -> Result<Box<dyn Driver>, Failure> {
    Ok(Box::new(Arrays(Db::connect(&place.words()).await?)))
}
