//! Connections of `tokio_postgres`: for the transactions that users' closures get, and for listening.

use tokio_postgres::{Client, Connection, Socket};
use tracing::warn;

use crate::{
    error::{Error, Kind, Result},
    target::{MakeTls, Target},
};

pub(crate) type TlsStream = <MakeTls as tokio_postgres::tls::MakeTlsConnect<Socket>>::Stream;

/// Connects once, without patience.
pub(crate) async fn connect(target: &Target) -> Result<(Client, Connection<Socket, TlsStream>)> {
    target.config.connect(target.tls.clone()).await.map_err(|e| Error::new(Kind::Connect(e)))
}

/// Connects once, sets the session up, and drives the connection in a task of its own.
pub(crate) async fn open(target: &Target) -> Result<Client> {
    let (client, connection) = connect(target).await?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            warn!(%error, "a connection to the database broke");
        }
    });
    let prepared = client.batch_execute(super::session::SET_UP).await;
    prepared.map_err(|error| Error::new(Kind::Connect(error)))?;
    Ok(client)
}
