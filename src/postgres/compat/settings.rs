//! The settings of a connection.

use std::{
    fmt::{self, Write},
    net::IpAddr,
    path::Path,
    str::FromStr,
    time::Duration,
};

use tokio_postgres::{
    NoTls, Socket,
    config::{ChannelBinding, Host, LoadBalanceHosts, SslMode, SslNegotiation, TargetSessionAttrs},
    tls::NoTlsStream,
};

use super::{
    client::Client,
    connect::{self, Connection, RawStream},
    encryption::Encryption,
    failure::Error,
};
use crate::postgres::target::Target;

/// Connects to a database. The caller must poll the connection, for example in a task.
///
/// # Errors
/// The string is not valid, or the database cannot be reached.
pub async fn connect<T: Encryption>(config: &str, tls: T) -> Result<(Client, Connection<Socket, T::Stream>), Error> {
    config.parse::<Config>()?.connect(tls).await
}

/// The settings of a connection, with the same names as in libpq. Environment variables and
/// password files are not used.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Config {
    settings: Vec<(String, String)>,
    hosts: Vec<Host>,
    ports: Vec<u16>,
}

impl Config {
    /// Creates a configuration without settings.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn set(&mut self, name: &str, value: &str) -> &mut Self {
        self.settings.retain(|(known, _)| known != name);
        self.add(name, value)
    }

    fn add(&mut self, name: &str, value: &str) -> &mut Self {
        match self.settings.iter_mut().find(|(known, _)| known == name) {
            Some((_, values)) => {
                values.push(',');
                values.push_str(value);
            }
            None => self.settings.push((name.to_owned(), value.to_owned())),
        }
        self.list_hosts()
    }

    /// Updates the lists of hosts and ports that the getters return.
    fn list_hosts(&mut self) -> &mut Self {
        let values = |name| self.get(name).into_iter().flat_map(|values| values.split(','));
        let host = |name: &str| match name.starts_with(['/', '@']) {
            true => Host::Unix(name.into()),
            false => Host::Tcp(name.to_owned()),
        };
        let hosts = values("host").filter(|name| !name.is_empty()).map(host).collect();
        let ports = values("port").filter_map(|port| port.parse().ok()).collect();
        (self.hosts, self.ports) = (hosts, ports);
        self
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.settings.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    fn set_seconds(&mut self, name: &str, time: Duration) -> &mut Self {
        self.set(name, &time.as_secs().max(1).to_string())
    }

    /// Sets the user.
    pub fn user(&mut self, user: impl AsRef<str>) -> &mut Self {
        self.set("user", user.as_ref())
    }

    /// Sets the password.
    pub fn password(&mut self, password: impl AsRef<[u8]>) -> &mut Self {
        self.set("password", &String::from_utf8_lossy(password.as_ref()))
    }

    /// Sets the database.
    pub fn dbname(&mut self, dbname: impl AsRef<str>) -> &mut Self {
        self.set("dbname", dbname.as_ref())
    }

    /// Sets command-line options for the server, for example `-c statement_timeout=1s`.
    pub fn options(&mut self, options: impl AsRef<str>) -> &mut Self {
        self.set("options", options.as_ref())
    }

    /// Sets the name of the program.
    pub fn application_name(&mut self, application_name: impl AsRef<str>) -> &mut Self {
        self.set("application_name", application_name.as_ref())
    }

    /// Adds a host: a name, an address, or the directory of a socket.
    pub fn host(&mut self, host: impl AsRef<str>) -> &mut Self {
        self.add("host", host.as_ref())
    }

    /// Adds the directory of a socket.
    #[cfg(unix)]
    pub fn host_path(&mut self, host: impl AsRef<Path>) -> &mut Self {
        self.add("host", &host.as_ref().to_string_lossy())
    }

    /// Adds an address, which is used instead of looking up the host at the same position.
    pub fn hostaddr(&mut self, hostaddr: IpAddr) -> &mut Self {
        self.add("hostaddr", &hostaddr.to_string())
    }

    /// Adds a port. A configuration has either one port for all hosts, or one port for each host.
    pub fn port(&mut self, port: u16) -> &mut Self {
        self.add("port", &port.to_string())
    }

    /// Sets the maximum time for connecting to each host.
    pub fn connect_timeout(&mut self, connect_timeout: Duration) -> &mut Self {
        self.set_seconds("connect_timeout", connect_timeout)
    }

    /// Sets the maximum time for which sent data may remain unacknowledged.
    pub fn tcp_user_timeout(&mut self, tcp_user_timeout: Duration) -> &mut Self {
        let millis = tcp_user_timeout.as_millis().min(i32::MAX as u128);
        self.set("tcp_user_timeout", &millis.max(u128::from(!tcp_user_timeout.is_zero())).to_string())
    }

    /// Sets whether idle connections are checked with keepalive probes.
    pub fn keepalives(&mut self, keepalives: bool) -> &mut Self {
        self.set("keepalives", if keepalives { "1" } else { "0" })
    }

    /// Sets the idle time before the first probe.
    pub fn keepalives_idle(&mut self, keepalives_idle: Duration) -> &mut Self {
        self.set_seconds("keepalives_idle", keepalives_idle)
    }

    /// Sets the time between two probes.
    pub fn keepalives_interval(&mut self, keepalives_interval: Duration) -> &mut Self {
        self.set_seconds("keepalives_interval", keepalives_interval)
    }

    /// Sets the number of unanswered probes after which the connection is considered lost.
    pub fn keepalives_retries(&mut self, keepalives_retries: u32) -> &mut Self {
        self.set("keepalives_retries", &keepalives_retries.to_string())
    }

    /// Sets whether the connection is encrypted.
    pub fn ssl_mode(&mut self, ssl_mode: SslMode) -> &mut Self {
        self.set(
            "sslmode",
            match ssl_mode {
                SslMode::Disable => "disable",
                SslMode::Prefer => "prefer",
                _ => "require",
            },
        )
    }

    /// Sets how encryption is negotiated.
    pub fn ssl_negotiation(&mut self, ssl_negotiation: SslNegotiation) -> &mut Self {
        self.set("sslnegotiation", if ssl_negotiation == SslNegotiation::Direct { "direct" } else { "postgres" })
    }

    /// Sets whether the login uses channel binding.
    pub fn channel_binding(&mut self, channel_binding: ChannelBinding) -> &mut Self {
        self.set(
            "channel_binding",
            match channel_binding {
                ChannelBinding::Disable => "disable",
                ChannelBinding::Prefer => "prefer",
                _ => "require",
            },
        )
    }

    /// Sets whether the server must accept writes, must not accept writes, or may do either.
    pub fn target_session_attrs(&mut self, target_session_attrs: TargetSessionAttrs) -> &mut Self {
        self.set(
            "target_session_attrs",
            match target_session_attrs {
                TargetSessionAttrs::ReadWrite => "read-write",
                TargetSessionAttrs::ReadOnly => "read-only",
                _ => "any",
            },
        )
    }

    /// Sets whether the hosts are tried in random order.
    pub fn load_balance_hosts(&mut self, load_balance_hosts: LoadBalanceHosts) -> &mut Self {
        let is_random = load_balance_hosts == LoadBalanceHosts::Random;
        self.set("load_balance_hosts", if is_random { "random" } else { "disable" })
    }

    /// Sets any other setting by its name, for example `sslrootcert`.
    pub fn setting(&mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> &mut Self {
        self.set(name.as_ref(), value.as_ref())
    }

    /// Returns the user.
    #[must_use]
    pub fn get_user(&self) -> Option<&str> {
        self.get("user")
    }

    /// Returns the database.
    #[must_use]
    pub fn get_dbname(&self) -> Option<&str> {
        self.get("dbname")
    }

    /// Returns the command-line options for the server.
    #[must_use]
    pub fn get_options(&self) -> Option<&str> {
        self.get("options")
    }

    /// Returns the name of the program.
    #[must_use]
    pub fn get_application_name(&self) -> Option<&str> {
        self.get("application_name")
    }

    /// Returns the password.
    #[must_use]
    pub fn get_password(&self) -> Option<&[u8]> {
        self.get("password").map(str::as_bytes)
    }

    /// Returns the hosts.
    #[must_use]
    pub fn get_hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// Returns the ports.
    #[must_use]
    pub fn get_ports(&self) -> &[u16] {
        &self.ports
    }

    fn names_a_host(&self) -> bool {
        self.settings.iter().any(|(name, value)| ["host", "hostaddr"].contains(&&**name) && !value.is_empty())
    }

    fn target(&self) -> Result<Target, Error> {
        let mut text = String::new();
        for (name, value) in &self.settings {
            let value = value.replace('\\', "\\\\").replace('\'', "\\'");
            let _ = write!(text, "{name}='{value}' "); // writing to a text cannot fail
        }
        if !self.names_a_host() {
            // A stream that the caller opened needs no host. The default host may be a socket, and
            // then `sslmode` would not apply.
            text.push_str("host=localhost");
        }
        Target::parse_in(&text, |_| None).map_err(Error::connect)
    }

    /// Connects to a database. The caller must poll the connection, for example in a task.
    ///
    /// # Errors
    /// The settings are not valid, or the database cannot be reached.
    pub async fn connect<T: Encryption>(&self, tls: T) -> Result<(Client, Connection<Socket, T::Stream>), Error> {
        if !self.names_a_host() {
            return Err(Error::other("both host and hostaddr are missing"));
        }
        connect::open(&tls.applied(&self.target()?)?).await
    }

    /// Logs in over a stream that the caller has opened.
    ///
    /// # Errors
    /// The settings are not valid or require encryption, or the server rejects the login.
    pub async fn connect_raw<S: RawStream>(
        &self,
        stream: S,
        tls: NoTls,
    ) -> Result<(Client, Connection<S, NoTlsStream>), Error> {
        connect::open_raw(stream, &tls.applied(&self.target()?)?).await
    }
}

impl FromStr for Config {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let mut config = Self::new();
        for (name, value) in Target::settings(text).map_err(Error::connect)? {
            match (&*name, value.parse::<i64>()) {
                ("host" | "hostaddr" | "port", _) if value.is_empty() => {}
                ("host" | "hostaddr" | "port", _) => {
                    config.add(&name, &value);
                }
                // `tokio_postgres` reads this setting as a number of seconds.
                ("tcp_user_timeout", Ok(seconds)) => {
                    config.set(&name, &seconds.saturating_mul(1000).min(i32::MAX.into()).to_string());
                }
                _ => {
                    config.set(&name, &value);
                }
            }
        }
        config.target()?;
        Ok(config)
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.settings.iter().map(|(name, value)| (name, if name == "password" { "_" } else { value }));
        out.debug_map().entries(shown).finish()
    }
}
