//! Connects to a server: chooses a host and an address, negotiates TLS and logs in.

mod encrypt;
mod address;

use std::{
    io::{self, ErrorKind},
    net::SocketAddr,
    path::PathBuf,
};

use socket2::{SockRef, TcpKeepalive};
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio::net::{TcpStream, lookup_host};
use tokio_postgres::{
    Config,
    config::{Host, LoadBalanceHosts},
};
use tracing::debug;
use uuid::Uuid;

use self::{
    address::{Address, Way, places},
    encrypt::encrypted,
};
pub(crate) use super::login::Connected;
use super::{login::login, stream::Stream};
use crate::{
    error::{Error, Kind, Result},
    postgres::target::{Target, late},
};

/// Connects to the first suitable host of the connection string. Tries the hosts in order or in
/// random order, and each only once.
///
/// `connect_timeout` applies to each address, and includes the login. If several hosts refuse the
/// connection, the error contains the reason of each host.
pub(crate) async fn connect(target: &Target) -> Result<Connected> {
    let mut ways = Vec::new();
    for config in target.configs() {
        ways.extend(places(config)?.into_iter().map(|place| (place, config)));
    }
    shuffle(&mut ways, &target.config);
    let mut refusals = Vec::new();
    for (place, config) in ways {
        match reach(&place, config, target).await {
            Ok(connected) => return Ok(connected),
            Err(error) => {
                debug!(%error, host = %place, "host refused the connection");
                refusals.push((place.to_string(), error));
            }
        }
    }
    Err(Error::nowhere(refusals))
}

async fn reach(place: &Address, config: &Config, target: &Target) -> Result<Connected> {
    let (name, address) = match &place.way {
        #[cfg(unix)]
        Way::Socket(path) => {
            let connected = async {
                let stream = UnixStream::connect(path).await.and_then(Stream::of_local);
                login(stream.map_err(|error| unreached(place, &error))?, config).await
            };
            return in_time(place, config, connected).await;
        }
        Way::Network { name, address } => (name, address),
    };
    let found = async { lookup_host((address.as_str(), place.port)).await.map_err(|error| unreached(place, &error)) };
    let mut addresses: Vec<SocketAddr> = in_time(place, config, found).await?.collect();
    shuffle(&mut addresses, config);
    if addresses.is_empty() {
        return Err(unreached(place, &io::Error::new(ErrorKind::NotFound, "the name has no address")));
    }
    let mut refusals = Vec::new();
    for address in addresses {
        let connected = async {
            let socket = open(address, config).await.map_err(|error| unreached(place, &error))?;
            login(encrypted(socket, name, target).await?, config).await
        };
        match in_time(place, config, connected).await {
            Ok(connected) => return Ok(connected),
            Err(error) => refusals.push((place.to_string(), error)),
        }
    }
    Err(Error::nowhere(refusals))
}

/// The address of a server, which is needed to open another connection to it.
#[derive(Debug, Clone)]
pub(crate) enum Peer {
    #[cfg(unix)]
    Socket(PathBuf),
    Network(SocketAddr),
}

impl Peer {
    /// Returns the address of the server at the other end of the stream. Returns `None` if the
    /// address is unknown.
    pub fn of(stream: &Stream) -> Option<Self> {
        match stream {
            Stream::Tcp(stream) => stream.peer_addr().ok().map(Self::Network),
            #[cfg(unix)]
            Stream::Unix(stream) => {
                stream.second().peer_addr().ok()?.as_pathname().map(|path| Self::Socket(path.to_owned()))
            }
            Stream::Tls(stream) => stream.get_ref().0.peer_addr().ok().map(Self::Network),
        }
    }
}

/// Opens another stream to the same server, without logging in. Encrypts it like the first stream.
pub(crate) async fn reopen(peer: &Peer, target: &Target) -> Result<Stream> {
    let lost = |error: io::Error| Error::new(Kind::Unreachable(error));
    let work = async {
        match peer {
            #[cfg(unix)]
            Peer::Socket(path) => UnixStream::connect(path).await.and_then(Stream::of_local).map_err(lost),
            Peer::Network(address) => {
                // Accepts a certificate for any configured host, because the host that the first
                // connection chose is not stored.
                let name = |host: &Host| match host {
                    Host::Tcp(name) => Some(name.clone()),
                    #[cfg(unix)]
                    Host::Unix(_) => None,
                };
                let mut names: Vec<String> = target.config.get_hosts().iter().filter_map(name).collect();
                names.dedup();
                let final_name = names.pop().unwrap_or_else(|| address.ip().to_string());
                for name in names {
                    let socket = open(*address, &target.config).await.map_err(lost)?;
                    if let Ok(stream) = encrypted(socket, &name, target).await {
                        return Ok(stream);
                    }
                }
                encrypted(open(*address, &target.config).await.map_err(lost)?, &final_name, target).await
            }
        }
    };
    target.in_time(1, work).await
}

pub(crate) async fn accept(stream: Stream, target: &Target) -> Result<Connected> {
    target.in_time(1, login(stream, &target.config)).await
}

async fn open(address: SocketAddr, config: &Config) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let socket = SockRef::from(&stream);
    #[cfg(target_os = "linux")]
    if let Some(limit) = config.get_tcp_user_timeout() {
        socket.set_tcp_user_timeout(Some(*limit))?;
    }
    if config.get_keepalives() {
        let mut keepalive = TcpKeepalive::new().with_time(config.get_keepalives_idle());
        if let Some(interval) = config.get_keepalives_interval() {
            keepalive = keepalive.with_interval(interval);
        }
        if let Some(retries) = config.get_keepalives_retries() {
            keepalive = keepalive.with_retries(retries);
        }
        socket.set_tcp_keepalive(&keepalive)?;
    }
    Ok(stream)
}

async fn in_time<T>(place: &Address, config: &Config, work: impl Future<Output = Result<T>>) -> Result<T> {
    match config.get_connect_timeout() {
        None => work.await,
        Some(limit) => {
            tokio::time::timeout(*limit, work).await.unwrap_or_else(|_| Err(unreached(place, &late(*limit))))
        }
    }
}

fn unreached(place: &Address, error: &io::Error) -> Error {
    Error::new(Kind::Unreachable(io::Error::new(error.kind(), format!("{place}: {error}"))))
}

fn shuffle<T>(choices: &mut [T], config: &Config) {
    if config.get_load_balance_hosts() == LoadBalanceHosts::Random {
        choices.sort_by_cached_key(|_| Uuid::new_v4());
    }
}

#[cfg(test)]
pub(crate) mod tests;
