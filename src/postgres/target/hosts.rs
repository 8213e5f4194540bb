//! The hosts of a connection, with their addresses and ports.

use std::{net::IpAddr, path::Path};

use tokio_postgres::{Config, config::Host};

use super::connection_string::ConnectionString;
use crate::error::{Error, Result};

const PORT: u16 = 5432;
/// The directories in which to look for a socket: those of Linux distributions, then PostgreSQL's
/// default.
const SOCKETS: [&str; 3] = ["/run/postgresql", "/var/run/postgresql", "/tmp"];
const NAMES: [&str; 3] = ["host", "hostaddr", "port"];

/// The hosts, their addresses if any are given, and the ports, each in the order of the string.
pub(super) struct Hosts {
    names: Vec<Host>,
    addresses: Vec<IpAddr>,
    ports: Vec<u16>,
}

pub(super) fn is_about_hosts(name: &str) -> bool {
    NAMES.contains(&name)
}

impl Hosts {
    pub fn of(options: &mut ConnectionString) -> Result<Self> {
        one_way(options);
        let config = options.config(is_about_hosts)?;
        let (names, addresses) = (config.get_hosts().to_vec(), config.get_hostaddrs().to_vec());
        if !addresses.is_empty() && names.iter().any(is_socket) {
            return Err(Error::invalid(
                "host is the folder of a socket, so hostaddr cannot be set: remove one of the two",
            ));
        }
        let mut hosts = Self { names, addresses, ports: config.get_ports().to_vec() };
        if hosts.names.is_empty() {
            hosts.names = vec![Host::Tcp(String::new()); hosts.addresses.len().max(1)];
        }
        let is_unnamed = |host: &Host| *host == Host::Tcp(String::new());
        let filled = |(at, host): (usize, &Host)| if is_unnamed(host) { hosts.unnamed(at) } else { host.clone() };
        hosts.names = hosts.names.iter().enumerate().map(filled).collect();
        Ok(hosts)
    }

    /// Returns the host of an empty name: its address, or the default. The server's certificate
    /// must then contain the address, as in libpq.
    fn unnamed(&self, at: usize) -> Host {
        self.addresses.get(at).map_or_else(|| usual(self.port(at)), |address| Host::Tcp(address.to_string()))
    }

    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn all_on_sockets(&self) -> bool {
        self.names.iter().all(is_socket)
    }

    pub fn all(&self, of: &Config) -> Config {
        let mut config = of.clone();
        for host in &self.names {
            add(&mut config, host);
        }
        for address in &self.addresses {
            config.hostaddr(*address);
        }
        for port in &self.ports {
            config.port(*port);
        }
        config
    }

    pub fn one(&self, of: &Config, at: usize) -> Config {
        let mut config = of.clone();
        if let Some(host) = self.names.get(at) {
            add(&mut config, host);
        }
        if let Some(address) = self.addresses.get(at) {
            config.hostaddr(*address);
        }
        config.port(self.port(at));
        config
    }

    /// Returns true if each host can be paired with an address and a port. The addresses may be
    /// missing, and all hosts may share one port.
    pub fn are_paired(&self) -> bool {
        let (addresses, ports) = (self.addresses.len(), self.ports.len());
        (addresses == 0 || addresses == self.len()) && (ports <= 1 || ports == self.len())
    }

    /// Returns the names that a password file may use for a host, and the host's port.
    pub fn names(&self, at: usize) -> (Vec<String>, u16) {
        let names = match self.names.get(at) {
            Some(Host::Tcp(name)) => vec![name.clone()],
            #[cfg(unix)]
            Some(Host::Unix(folder)) => {
                let is_usual = SOCKETS.iter().any(|known| folder.as_path() == Path::new(known));
                let mut names = vec![folder.display().to_string()];
                if is_usual {
                    names.push("localhost".to_owned());
                }
                names
            }
            _ => Vec::new(),
        };
        (names, self.port(at))
    }

    fn port(&self, at: usize) -> u16 {
        self.ports.get(at).or(self.ports.first()).copied().unwrap_or(PORT)
    }
}

/// Resolves a conflict between the directory of a socket and an address. The setting from the
/// source with lower precedence is removed.
fn one_way(options: &mut ConnectionString) {
    let (Some(host), Some(address)) = (options.get("host"), options.get("hostaddr")) else { return };
    if host.value.split(',').any(|host| host.starts_with('/')) {
        if host.origin.outdoes(&address.origin) {
            options.remove("hostaddr");
        } else if address.origin.outdoes(&host.origin) {
            options.remove("host");
        }
    }
}

/// Returns the default host, which is this machine. Uses its Unix socket if there is one.
fn usual(port: u16) -> Host {
    let has_socket = |folder: &&&str| Path::new(folder).join(format!(".s.PGSQL.{port}")).exists();
    #[cfg(unix)]
    if let Some(folder) = SOCKETS.iter().find(has_socket) {
        return Host::Unix(folder.into());
    }
    Host::Tcp("localhost".to_owned())
}

fn is_socket(host: &Host) -> bool {
    matches!(host, Host::Unix(_))
}

fn add(config: &mut Config, host: &Host) {
    match host {
        Host::Tcp(name) => config.host(name),
        #[cfg(unix)]
        Host::Unix(folder) => config.host_path(folder),
    };
}
