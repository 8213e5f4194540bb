//! Redis streams.

mod sink;
mod source;

use std::time::Duration;

use ::redis::{
    Client, TlsCertificates,
    aio::{ConnectionManager, ConnectionManagerConfig},
};

pub use self::{sink::RedisSink, source::RedisSource};
use crate::{
    address::Address,
    error::{Error, Result},
};

/// The field with the payload.
const BODY: &str = "body";

/// A connection that is made again by itself.
async fn connect(address: &Address, patience: Duration) -> Result<ConnectionManager> {
    let said = |cause: ::redis::RedisError| Error::broker(address.shown(), cause);
    let database: u16 = address.option("db")?.unwrap_or(0);
    let url = format!("{}://{}/{database}", address.scheme, address.servers);
    let root_cert = address.authorities()?.map(String::into_bytes);
    let certificates = TlsCertificates { client_tls: None, root_cert };
    let client = match &*address.scheme {
        "rediss" => Client::build_with_tls(url, certificates).map_err(said)?,
        _ => Client::open(url).map_err(said)?,
    };
    let config = ConnectionManagerConfig::new()
        .set_connection_timeout(Some(Duration::from_secs(5)))
        .set_response_timeout(Some(patience))
        .set_number_of_retries(1)
        .set_max_delay(Duration::from_millis(500));
    ConnectionManager::new_with_config(client, config).await.map_err(said)
}
