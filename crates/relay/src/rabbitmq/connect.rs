//! Connections, made again when they break, and the channels on them.

use std::{
    sync::{Mutex as Lock, PoisonError},
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

use crate::{
    address::Address,
    error::{Error, Result},
};

/// How long a broker has for what is no message: a connection, a channel, a question.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// From one vain connection to the next.
const PAUSE: Duration = Duration::from_millis(500);
/// A broker that says nothing for twice as long is away.
const HEARTBEAT: u16 = 5;
/// A broker that comes back answers before it has found all queues again, and says of these that
/// they are not there.
const SETTLES: Duration = Duration::from_secs(30);

/// The servers of an address, tried in order.
fn servers(address: &Address) -> Result<Vec<AMQPUri>> {
    let vhost = address.option::<String>("vhost")?.unwrap_or_else(|| "/".to_owned());
    let (scheme, port) = match &*address.scheme {
        "amqps" | "rabbitmqs" => ("amqps", 5671),
        _ => ("amqp", 5672),
    };
    // What is before the last @ is for all servers.
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

/// A connection that is made when it is needed.
pub(super) struct Reach {
    servers: Vec<AMQPUri>,
    /// By whose certificates servers are known, where the address says so.
    authorities: Option<String>,
    held: Mutex<Held>,
    /// When a connection was made that was not the first.
    again: Lock<Option<Instant>>,
}

#[derive(Default)]
struct Held {
    was_there: bool,
    connection: Option<Connection>,
    /// Why there was none last time, and until when none is tried again.
    failed: Option<(lapin::Error, Instant)>,
}

impl Reach {
    /// # Errors
    /// The address makes no sense.
    pub fn of(address: &Address) -> Result<Self> {
        let (servers, authorities) = (servers(address)?, address.authorities()?);
        Ok(Self { servers, authorities, held: Mutex::default(), again: Lock::default() })
    }

    /// A new channel.
    pub async fn channel(&self) -> lapin::Result<Channel> {
        let mut held = self.held.lock().await;
        if let Some(connection) = held.connection.as_ref().filter(|connection| connection.status().connected())
            && let Ok(Ok(channel)) = timeout(PATIENCE, connection.create_channel()).await
        {
            return Ok(channel);
        }
        // It is gone, says nothing, or has no more channels.
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
        held.connection = Some(connection);
        if std::mem::replace(&mut held.was_there, true) {
            *self.again.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        }
        Ok(channel)
    }

    /// Whether the broker came back so lately that what is missing may yet be found.
    pub fn settles(&self) -> bool {
        let again = self.again.lock().unwrap_or_else(PoisonError::into_inner);
        again.is_some_and(|again| again.elapsed() < SETTLES)
    }

    /// The first server that answers.
    async fn connect(&self) -> lapin::Result<Connection> {
        let mut error = silent();
        for server in &self.servers {
            // The client keeps some memory of each connection that it tries in vain: it tries where
            // a server listens.
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
