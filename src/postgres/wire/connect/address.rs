//! The addresses of the hosts that a connection string names.

use std::{fmt, path::PathBuf};

use tokio_postgres::{Config, config::Host};

use crate::error::{Error, Result};

const PORT: u16 = 5432;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub way: Way,
    pub port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Way {
    #[cfg(unix)]
    Socket(PathBuf),
    /// A network address. The certificate must contain `name`, which may differ from `address`.
    Network { name: String, address: String },
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.way {
            #[cfg(unix)]
            Way::Socket(path) => write!(out, "{}", path.display()),
            Way::Network { name, .. } => write!(out, "{name} port {}", self.port),
        }
    }
}

/// Returns the hosts in order, each with its port and with its `hostaddr`, if one is given.
pub(super) fn places(config: &Config) -> Result<Vec<Address>> {
    let (hosts, addresses, ports) = (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
    if !addresses.is_empty() && addresses.len() != hosts.len() {
        let text = format!("there are {} hosts, but {} hostaddrs", hosts.len(), addresses.len());
        return Err(Error::invalid(text));
    }
    if ports.len() > 1 && ports.len() != hosts.len() {
        return Err(Error::invalid(format!("there are {} hosts, but {} ports", hosts.len(), ports.len())));
    }
    let places = hosts.iter().enumerate().map(|(at, host)| {
        let port = ports.get(at).or(ports.first()).copied().unwrap_or(PORT);
        let address = addresses.get(at).map(ToString::to_string);
        let way = match (host, address) {
            #[cfg(unix)]
            (Host::Unix(folder), None) => Way::Socket(folder.join(format!(".s.PGSQL.{port}"))),
            #[cfg(unix)] // `Hosts::of` has returned an error for this
            (Host::Unix(_), Some(address)) => Way::Network { name: address.clone(), address },
            (Host::Tcp(name), address) => {
                Way::Network { name: name.clone(), address: address.unwrap_or_else(|| name.clone()) }
            }
        };
        Address { way, port }
    });
    Ok(places.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::target::Target;

    #[test]
    fn hosts_addresses_and_ports_are_paired() {
        for (text, wanted) in [
            ("host=a", "a at a:5432"),
            ("host=a,b port=1,2", "a at a:1, b at b:2"),
            ("host=a,b port=7", "a at a:7, b at b:7"),
            ("host=a hostaddr=10.0.0.1", "a at 10.0.0.1:5432"),
            ("hostaddr=10.0.0.1", "10.0.0.1 at 10.0.0.1:5432"),
            ("host=/run port=9", "/run/.s.PGSQL.9"),
            ("host=a,b port=1,2,3", "ports"),
            ("host=a,b hostaddr=10.0.0.1", "hostaddrs"),
        ] {
            let found = match places(&Target::parse_in(text, |_| None).expect(text).config) {
                Ok(places) => places.iter().map(shown).collect::<Vec<_>>().join(", "),
                Err(error) => error.to_string(),
            };
            assert!(found.ends_with(wanted), "{text}: {found}");
        }
    }

    fn shown(place: &Address) -> String {
        match &place.way {
            Way::Socket(path) => path.display().to_string(),
            Way::Network { name, address } => format!("{name} at {address}:{}", place.port),
        }
    }

    #[test]
    fn an_address_alone_is_no_reason_to_leave_tls_out() {
        let config = Target::parse_in("hostaddr=10.0.0.1 sslmode=require", |_| None).expect("parsed").config;
        assert_eq!(config.get_ssl_mode(), tokio_postgres::config::SslMode::Require);
    }
}
