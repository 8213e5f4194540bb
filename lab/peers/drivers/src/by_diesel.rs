//! Drives Postgres with diesel-async. The statements are built in Rust, and the connection keeps
//! them prepared.

mod tables;
mod rows;
mod all_null;
mod each;
mod read;
mod write;
mod batches;

use diesel_async::{AsyncConnection, AsyncPgConnection};
use trunkline_drivers::{Driver, Failure, Place};

use self::{batches::Batches, each::Each};

pub async fn open(place: Place, pipelined: bool) -> Result<Box<dyn Driver>, Failure> {
    let connection = AsyncPgConnection::establish(&place.words()).await?;
    Ok(Box::new(Each { connection, pipelined }))
}

pub async fn batches(place: Place) -> Result<Box<dyn Driver>, Failure> {
    Ok(Box::new(Batches(AsyncPgConnection::establish(&place.words()).await?)))
}
