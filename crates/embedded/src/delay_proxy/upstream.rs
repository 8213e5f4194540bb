use crate::cluster::Cluster;
use crate::error::{Error, Result};
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(5);

/// The server behind a [`DelayProxy`](crate::DelayProxy): a TCP address or a unix socket.
///
/// As text it is `HOST:PORT`, or `FOLDER:PORT` for PostgreSQL's socket in a folder that begins with
/// `/`. Parsing the text looks up the host once. The proxy tries its addresses in order.
///
/// ```
/// use trunkline_embedded::Upstream;
///
/// for text in ["127.0.0.1:5432", "[::1]:5432", "/var/run/postgresql:5432"] {
///     assert_eq!(text.parse::<Upstream>()?.to_string(), text);
/// }
/// # Ok::<(), trunkline_embedded::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Upstream {
    name: String,
    place: Place,
}

#[derive(Debug, Clone)]
enum Place {
    Tcp(Vec<SocketAddr>),
    Unix(PathBuf),
}

impl Upstream {
    /// Connects and closes the connection. Fails after at most five seconds per address, or at once
    /// if no server listens.
    ///
    /// ```
    /// # use std::path::Path;
    /// use trunkline_embedded::Upstream;
    ///
    /// assert!(Upstream::from(Path::new("/nowhere")).check().is_err());
    /// ```
    pub fn check(&self) -> Result<()> {
        self.connect().map(drop).map_err(Error::because(format!("cannot connect to {self}")))
    }

    pub(crate) fn connect(&self) -> io::Result<TcpStream> {
        match &self.place {
            Place::Tcp(addresses) => {
                let mut failed = io::ErrorKind::AddrNotAvailable.into();
                for address in addresses {
                    match TcpStream::connect_timeout(address, PATIENCE) {
                        Ok(stream) => return stream.set_nodelay(true).map(|()| stream),
                        Err(cause) => failed = cause,
                    }
                }
                Err(failed)
            }
            // The system's calls accept both kinds of sockets. So a `TcpStream` can read from,
            // write to and shut down a unix socket.
            Place::Unix(path) => Ok(TcpStream::from(OwnedFd::from(UnixStream::connect(path)?))),
        }
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl FromStr for Upstream {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let split = text.rsplit_once(':').filter(|(host, _)| !host.is_empty());
        let parsed = split.and_then(|(host, port)| Some((host, port.parse().ok().filter(|port: &u16| *port > 0)?)));
        let Some((host, port)) = parsed else {
            return Err(Error::new(format!(
                "a server is HOST:PORT, or FOLDER:PORT where its socket is in a folder, as in localhost:5432 or \
                 /var/run/postgresql:5432; {text:?} is neither"
            )));
        };
        let place = if host.starts_with('/') {
            Place::Unix(socket(Path::new(host), port))
        } else {
            let found = text.to_socket_addrs();
            Place::Tcp(found.map_err(Error::because(format!("cannot find the host {host:?}")))?.collect())
        };
        Ok(Self { name: text.to_owned(), place })
    }
}

impl From<SocketAddr> for Upstream {
    fn from(address: SocketAddr) -> Self {
        Self { name: address.to_string(), place: Place::Tcp(vec![address]) }
    }
}

/// Converts the path of the socket itself, not the path of its folder.
impl From<&Path> for Upstream {
    fn from(socket: &Path) -> Self {
        Self { name: socket.display().to_string(), place: Place::Unix(socket.to_owned()) }
    }
}

impl From<&Cluster> for Upstream {
    fn from(cluster: &Cluster) -> Self {
        Self::from(&*socket(cluster.socket_dir(), cluster.port()))
    }
}

fn socket(folder: &Path, port: u16) -> PathBuf {
    folder.join(format!(".s.PGSQL.{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_server_address_is_refused_with_the_right_form() {
        for text in ["", "5432", "localhost", "localhost:", ":5432", "localhost:0", "localhost:65536", "/run:x", "/run"]
        {
            let error = text.parse::<Upstream>().unwrap_err().to_string();
            assert!(error.contains("HOST:PORT") && error.contains(&format!("{text:?}")), "{error}");
        }
    }

    #[test]
    fn a_host_that_is_not_there_is_named() {
        let error = "no such host:5432".parse::<Upstream>().unwrap_err().to_string();
        assert!(error.contains("\"no such host\""), "{error}");
    }
}
