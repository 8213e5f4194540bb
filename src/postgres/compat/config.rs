//! The settings of a connection.

use std::{fmt, fmt::Write, str::FromStr, time::Duration};

use tokio_postgres::{NoTls, Socket, tls::NoTlsStream};

use super::{
    client::Client,
    connect::{self, Connection, RawStream},
    encryption::Encryption,
    failure::Error,
};
use crate::postgres::target::Target;

/// Connects to a database. The connection must be polled, for example by a task.
///
/// # Errors
/// The string is not valid, or the database cannot be reached.
pub async fn connect<T: Encryption>(config: &str, tls: T) -> Result<(Client, Connection<Socket, T::Stream>), Error> {
    config.parse::<Config>()?.connect(tls).await
}

/// The settings of a connection, by the names that libpq gives to them. Variables of the
/// environment and password files are not read.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Config(Vec<(String, String)>);

impl Config {
    /// Creates a configuration without settings.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn set(&mut self, name: &str, value: &str) -> &mut Self {
        self.0.retain(|(known, _)| known != name);
        self.add(name, value)
    }

    fn add(&mut self, name: &str, value: &str) -> &mut Self {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, values)) => {
                values.push(',');
                values.push_str(value);
            }
            None => self.0.push((name.to_owned(), value.to_owned())),
        }
        self
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

    /// Sets the options of the session, as on the command line of the server.
    pub fn options(&mut self, options: impl AsRef<str>) -> &mut Self {
        self.set("options", options.as_ref())
    }

    /// Sets the name of the program.
    pub fn application_name(&mut self, application_name: impl AsRef<str>) -> &mut Self {
        self.set("application_name", application_name.as_ref())
    }

    /// Adds a host: a name, an address, or the folder of a socket.
    pub fn host(&mut self, host: impl AsRef<str>) -> &mut Self {
        self.add("host", host.as_ref())
    }

    /// Adds a port: one for all hosts, or one for each.
    pub fn port(&mut self, port: u16) -> &mut Self {
        self.add("port", &port.to_string())
    }

    /// Sets the time limit for each host.
    pub fn connect_timeout(&mut self, connect_timeout: Duration) -> &mut Self {
        self.set("connect_timeout", &connect_timeout.as_secs().max(1).to_string())
    }

    /// Sets another setting by its name, for example `sslmode` or `target_session_attrs`.
    pub fn setting(&mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> &mut Self {
        self.set(name.as_ref(), value.as_ref())
    }

    fn target(&self) -> Result<Target, Error> {
        let mut text = String::new();
        for (name, value) in &self.0 {
            let value = value.replace('\\', "\\\\").replace('\'', "\\'");
            let _ = write!(text, "{name}='{value}' "); // writing to a text cannot fail
        }
        Target::parse_in(&text, |_| None).map_err(Error::connect)
    }

    /// Connects. The connection must be polled, for example by a task.
    ///
    /// # Errors
    /// The settings are not valid, or the database cannot be reached.
    pub async fn connect<T: Encryption>(&self, tls: T) -> Result<(Client, Connection<Socket, T::Stream>), Error> {
        if !self.0.iter().any(|(name, value)| ["host", "hostaddr"].contains(&&**name) && !value.is_empty()) {
            return Err(Error::other("both host and hostaddr are missing"));
        }
        connect::open(&tls.applied(&self.target()?)?).await
    }

    /// Logs in on a stream that the caller has opened.
    ///
    /// # Errors
    /// The settings are not valid, or the server refuses them.
    pub async fn connect_raw<S: RawStream>(
        &self,
        stream: S,
        _tls: NoTls,
    ) -> Result<(Client, Connection<S, NoTlsStream>), Error> {
        connect::open_raw(stream, &self.target()?).await
    }
}

impl FromStr for Config {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let config = Self(Target::settings(text).map_err(Error::connect)?);
        config.target()?;
        Ok(config)
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.iter().map(|(name, value)| (name, if name == "password" { "_" } else { value }));
        out.debug_map().entries(shown).finish()
    }
}
