//! The `tokio_postgres` connection that listens for notifications.

use tokio_postgres::{Client, Connection, Socket};

use crate::{
    error::{Error, Kind, Result},
    postgres::target::{MakeTls, Target},
};

pub(crate) type TlsStream = <MakeTls as tokio_postgres::tls::MakeTlsConnect<Socket>>::Stream;

pub(crate) async fn connect(target: &Target) -> Result<(Client, Connection<Socket, TlsStream>)> {
    let connecting = async {
        let mut outcome = Err(Error::invalid("there is no host to connect to"));
        let tls = MakeTls::new(target.tls.config().as_ref().clone());
        for config in target.configs() {
            outcome = config.connect(tls.clone()).await.map_err(|error| Error::new(Kind::Connect(error)));
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    };
    target.in_time(target.config.get_hosts().len(), connecting).await
}
