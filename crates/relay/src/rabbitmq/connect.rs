//! The connection, which is replaced when it breaks, and its channels.

use std::{
    sync::{Arc, Mutex as Lock, PoisonError},
    time::Duration,
};

use futures_util::FutureExt;
use lapin::{
    Channel, Connection, ConnectionProperties, ErrorKind, runtime::default_runtime, tcp::OwnedTLSConfig, uri::AMQPUri,
};
use tokio::{
    net::TcpStream,
    sync::Mutex,
    time::{Instant, timeout},
};

use super::confirms::InFlight;
use crate::{
    address::Address,
    error::{Error, Result},
};

/// The time limit for opening a connection or a channel, and for a request.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// The minimum pause after a failed attempt to connect.
const PAUSE: Duration = Duration::from_millis(500);
/// The heartbeat interval, in seconds. A broker that sends nothing for twice this time counts as
/// unavailable.
const HEARTBEAT: u16 = 5;
/// The time after a reconnect during which the broker may still be loading queues. The broker
/// reports such queues as missing.
const SETTLES: Duration = Duration::from_secs(30);

/// Returns the servers of an address, in the order in which the relay tries them.
fn servers(address: &Address) -> Result<Vec<AMQPUri>> {
    let vhost = address.option::<String>("vhost")?.unwrap_or_else(|| "/".to_owned());
    let (scheme, port) = match &*address.scheme {
        "amqps" | "rabbitmqs" => ("amqps", 5671),
        _ => ("amqp", 5672),
    };
    // Applies the login before the last @ to all servers.
    let (login, hosts) = match address.servers.rsplit_once('@') {
        Some((login, hosts)) => (format!("{login}@"), hosts),
        None => (String::new(), &*address.servers),
    };
    let uri = |host: &str| {
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let host = if has_port { host.to_owned() } else { format!("{host}:{port}") };
        let parsed = format!("{scheme}://{login}{host}").parse::<AMQPUri>();
        let mut uri =
            parsed.map_err(|cause| Error::usage(format!("the address {} cannot be used: {cause}", address.shown())))?;
        uri.vhost.clone_from(&vhost);
        uri.query.heartbeat = Some(HEARTBEAT);
        Ok(uri)
    };
    hosts.split(',').map(uri).collect()
}

/// A connection that is opened on demand.
pub(super) struct Reach {
    servers: Vec<AMQPUri>,
    /// The certificates that verify servers, if the address names any.
    authorities: Option<String>,
    held: Mutex<Held>,
    /// The time of the last reconnect.
    again: Lock<Option<Instant>>,
}

#[derive(Default)]
struct Held {
    was_there: bool,
    connection: Option<Arc<Connection>>,
    /// The last error, and the time before which the relay does not connect again.
    failed: Option<(lapin::Error, Instant)>,
}

impl Held {
    /// Returns the connection, if it is open.
    fn open(&self) -> Option<Arc<Connection>> {
        self.connection.clone().filter(|connection| connection.status().connected())
    }
}

impl Reach {
    /// Parses the servers of an address. The first channel opens the connection.
    ///
    /// # Errors
    /// If the address is invalid.
    pub fn of(address: &Address) -> Result<Self> {
        let (servers, authorities) = (servers(address)?, address.authorities()?);
        Ok(Self { servers, authorities, held: Mutex::default(), again: Lock::default() })
    }

    /// Opens a channel. Calls do not wait for each other's round trips while there is a connection.
    /// They wait for batches that are in flight on it.
    pub async fn channel(&self, in_flight: &InFlight) -> lapin::Result<Channel> {
        let open = self.held.lock().await.open();
        if let Some(connection) = &open
            && let Some(Ok(channel)) = in_flight.answered(PATIENCE, connection.create_channel()).await
        {
            return Ok(channel);
        }
        let mut held = self.held.lock().await;
        // Another call may have replaced the connection.
        if let Some(newer) = held.open()
            && open.is_none_or(|open| !Arc::ptr_eq(&open, &newer))
            && let Some(Ok(channel)) = in_flight.answered(PATIENCE, newer.create_channel()).await
        {
            return Ok(channel);
        }
        // Drops the old connection, which is closed, does not answer, or has no free channel.
        if let Some(old) = held.connection.take() {
            tokio::spawn(async move { timeout(PATIENCE, old.close(200, "OK".into())).await });
        }
        if let Some((error, until)) = &held.failed
            && Instant::now() < *until
        {
            return Err(error.clone());
        }
        let connected = self.connect().await;
        held.failed = connected.as_ref().err().map(|error| (error.clone(), Instant::now() + PAUSE));
        let connection = connected?;
        let channel = timeout(PATIENCE, connection.create_channel()).await.map_err(|_| silent())??;
        held.connection = Some(Arc::new(connection));
        if std::mem::replace(&mut held.was_there, true) {
            *self.again.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        }
        Ok(channel)
    }

    /// Returns true if the broker came back recently, so that missing queues may still appear.
    pub fn settles(&self) -> bool {
        let again = self.again.lock().unwrap_or_else(PoisonError::into_inner);
        again.is_some_and(|again| again.elapsed() < SETTLES)
    }

    /// Connects to the first server that answers.
    async fn connect(&self) -> lapin::Result<Connection> {
        let mut error = silent();
        for server in &self.servers {
            // Tests with a plain TCP connection whether the server listens, because the client
            // leaks some memory with each failed connection.
            let (host, port) = (server.authority.host.as_str(), server.authority.port);
            match timeout(PATIENCE, TcpStream::connect((host, port))).await {
                Ok(Ok(_)) => {}
                Ok(Err(cause)) => {
                    error = cause.into();
                    continue;
                }
                Err(_) => continue,
            }
            let properties = ConnectionProperties::default().with_connection_name("trunkline relay".into());
            let tls = OwnedTLSConfig { identity: None, cert_chain: self.authorities.clone() };
            let connecting = Connection::connect_uri_with_config(server.clone(), properties, tls, default_runtime()?);
            match timeout(PATIENCE, connecting.boxed()).await {
                Ok(Ok(connection)) => return Ok(connection),
                Ok(Err(other)) => error = other,
                Err(_) => {}
            }
        }
        Err(error)
    }
}

pub(super) fn silent() -> lapin::Error {
    ErrorKind::MissingHeartbeatError.into()
}
