use std::str::FromStr;

use tokio_postgres::{Client, Config, NoTls, config::Host};

use crate::Failure;

/// The address of a database.
#[derive(Debug, Clone)]
pub struct Place {
    /// A host name, or the folder of a socket.
    pub host: String,
    /// The port, which is also part of a socket's name.
    pub port: u16,
    /// The user: a superuser, or a role that may create databases.
    pub user: String,
    /// The password, which may be empty.
    pub password: String,
    /// The name of the database.
    pub database: String,
}

impl Place {
    /// Parses a connection string.
    pub fn of(url: &str) -> Result<Self, Failure> {
        let config = Config::from_str(url)?;
        let host = match config.get_hosts() {
            [Host::Tcp(name)] => name.clone(),
            #[cfg(unix)]
            [Host::Unix(folder)] => folder.to_string_lossy().into_owned(),
            _ => return Err("the URL must name one host".into()),
        };
        let password = config.get_password().map(|secret| String::from_utf8_lossy(secret).into_owned());
        Ok(Self {
            host,
            port: config.get_ports().first().copied().unwrap_or(5432),
            user: config.get_user().unwrap_or("postgres").to_owned(),
            password: password.unwrap_or_default(),
            database: config.get_dbname().unwrap_or("postgres").to_owned(),
        })
    }

    /// Returns a connection string in the `name=value` form.
    #[must_use]
    pub fn words(&self) -> String {
        let quoted = |text: &str| format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"));
        let Self { host, port, user, password, database } = self;
        let (host, user, database) = (quoted(host), quoted(user), quoted(database));
        let secret = if password.is_empty() { String::new() } else { format!(" password={}", quoted(password)) };
        format!("host={host} port={port} user={user} dbname={database}{secret}")
    }

    /// Connects with `tokio_postgres`; a spawned task drives the connection.
    pub async fn connect(&self) -> Result<Client, Failure> {
        let (client, connection) = tokio_postgres::connect(&self.words(), NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }
}
