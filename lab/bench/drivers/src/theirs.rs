//! Drives Postgres with `tokio_postgres`, in each way that is common in practice.

mod statements;
mod people;
mod binary;
mod arrays;
mod text;

use self::{arrays::Arrays, binary::Binary, statements::Statements, text::Text};
use crate::{Failure, driver::Driver, place::Place};

pub async fn binary(place: Place, pipelined: bool, together: bool) -> Result<Box<dyn Driver>, Failure> {
    let client = place.connect().await?;
    let statements = Statements::prepare(&client).await?;
    Ok(Box::new(Binary { client, statements, pipelined, together }))
}

pub async fn arrays(place: Place) -> Result<Box<dyn Driver>, Failure> {
    Ok(Box::new(Arrays::prepare(place.connect().await?).await?))
}

pub async fn text(place: Place) -> Result<Box<dyn Driver>, Failure> {
    Ok(Box::new(Text(place.connect().await?)))
}
