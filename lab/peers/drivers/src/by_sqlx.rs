//! Drives Postgres with sqlx. The statements are text, and the connection keeps them prepared. sqlx
//! has no pipeline.

mod found;
mod sequence;
mod arrays;

use sqlx::{Connection, PgConnection, postgres::PgConnectOptions};
use tokio::sync::Mutex;
use trunkline_drivers::{Driver, Failure, Place};

use self::{arrays::Arrays, sequence::Sequence};

pub async fn sequence(place: Place) -> Result<Box<dyn Driver>, Failure> {
    Ok(Box::new(Sequence(Mutex::new(connect(&place).await?))))
}

pub async fn arrays(place: Place) -> Result<Box<dyn Driver>, Failure> {
    Ok(Box::new(Arrays(Mutex::new(connect(&place).await?))))
}

/// Connects without a pool, because a single caller does not need one.
async fn connect(place: &Place) -> Result<PgConnection, Failure> {
    let options = PgConnectOptions::new_without_pgpass().port(place.port).username(&place.user);
    let options = options.database(&place.database);
    let options = match place.host.starts_with('/') {
        true => options.socket(&place.host),
        false => options.host(&place.host),
    };
    let options = if place.password.is_empty() { options } else { options.password(&place.password) };
    Ok(PgConnection::connect_with(&options).await?)
}
