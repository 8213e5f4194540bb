//! Redis streams.

mod last_id;
mod sink;
mod source;

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use ::redis::{
    Client, IntoConnectionInfo, RedisError, TlsCertificates,
    aio::{ConnectionManager, ConnectionManagerConfig},
    io::tcp::{TcpSettings, socket2::TcpKeepalive},
};

pub use self::{sink::RedisSink, source::RedisSource};
use crate::{
    address::Address,
    error::{Error, Result},
};

/// The minimum time between two new connections.
const PAUSE: Duration = Duration::from_millis(500);
/// The time after which the system tests an idle connection, and the interval of further tests. So
/// a connection to a server that has vanished fails before the next message, which would wait.
const IDLE: (Duration, Duration) = (Duration::from_secs(15), Duration::from_secs(5));

/// A connection that is replaced when its server refuses commands or does not answer, because the
/// host's name may then point to another server. The client replaces only a closed connection.
struct Reconnecting {
    address: Address,
    patience: Duration,
    current: Mutex<ConnectionManager>,
    /// The time of the last replacement; locked while a replacement is in progress.
    renewed: tokio::sync::Mutex<Option<Instant>>,
}

impl Reconnecting {
    async fn connect(address: &Address, patience: Duration) -> Result<Self> {
        let current = Mutex::new(connect(address, patience).await?);
        Ok(Self { address: address.clone(), patience, current, renewed: tokio::sync::Mutex::default() })
    }

    fn get(&self) -> ConnectionManager {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Connects to the same address again, and keeps the old connection if that fails. Returns at
    /// once if another call is already doing so.
    async fn renew(&self, error: &RedisError) {
        let Ok(mut renewed) = self.renewed.try_lock() else { return };
        if renewed.is_some_and(|renewed| renewed.elapsed() < PAUSE) {
            return;
        }
        let broker = self.address.shown();
        tracing::warn!(broker, %error, "connecting again: the server is a replica, still loads, or does not answer");
        match connect(&self.address, self.patience).await {
            Ok(new) => *self.current.lock().unwrap_or_else(PoisonError::into_inner) = new,
            Err(error) => tracing::warn!(broker, %error, "cannot connect again"),
        }
        *renewed = Some(Instant::now());
    }
}

/// Returns true if a server refuses commands because it is a replica, has lost its master, or is
/// still loading its data.
fn points_elsewhere(error: &RedisError) -> bool {
    matches!(error.code(), Some("READONLY" | "MASTERDOWN" | "LOADING"))
}

/// Opens a connection that reconnects by itself.
async fn connect(address: &Address, patience: Duration) -> Result<ConnectionManager> {
    let said = |cause: ::redis::RedisError| Error::broker(address.shown(), cause);
    let database: u16 = address.option("db")?.unwrap_or(0);
    let url = format!("{}://{}/{database}", address.scheme, address.servers);
    let root_cert = address.authorities()?.map(String::into_bytes);
    let certificates = TlsCertificates { client_tls: None, root_cert };
    let keepalive = TcpKeepalive::new().with_time(IDLE.0).with_interval(IDLE.1);
    let server = url.into_connection_info().map_err(said)?;
    let server = server.set_tcp_settings(TcpSettings::default().set_keepalive(keepalive));
    let client = match &*address.scheme {
        "rediss" => Client::build_with_tls(server, certificates).map_err(said)?,
        _ => Client::open(server).map_err(said)?,
    };
    let config = ConnectionManagerConfig::new()
        .set_connection_timeout(Some(Duration::from_secs(5)))
        .set_response_timeout(Some(patience))
        .set_number_of_retries(1)
        .set_max_delay(Duration::from_millis(500));
    ConnectionManager::new_with_config(client, config).await.map_err(said)
}
