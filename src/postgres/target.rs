//! What a connection string asks for: hosts, who, and TLS with libpq's meaning of `sslmode`.

mod options;
mod tls;

use std::{io, sync::Arc, time::Duration};

use rustls::ClientConfig;
use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};

pub(crate) use self::tls::MakeTls;
use self::{options::Options, tls::client_config};
use crate::{
    error::{Error, Kind, Result},
    postgres::sql::Schema,
};

/// How to connect: the parsed connection string and its TLS.
#[derive(Clone)]
pub(crate) struct Target {
    /// Whether to encrypt is its `sslmode`; whom to trust then is in `rustls`.
    pub config: Config,
    pub rustls: Arc<ClientConfig>,
    /// The same for `tokio_postgres`.
    pub tls: MakeTls,
    /// Whether connections keep prepared statements; where not, each use parses anew, as a pooler in transaction mode needs.
    pub keeps_statements: bool,
    pub limits: Limits,
    /// Where the queues are.
    pub schema: Schema,
}

/// What a server may cost us.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// How long it may say nothing while an answer is due.
    pub answer: Option<Duration>,
    /// Bytes of one answer that are kept.
    pub answer_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { answer: None, answer_bytes: ANSWER_BYTES }
    }
}

/// A host has this long from its socket to the end of the login, unless `connect_timeout` says otherwise.
const CONNECT: Duration = Duration::from_secs(10);
/// An answer is at most this large, unless `max_answer` says otherwise.
const ANSWER_BYTES: usize = 2 << 30;
/// The library's own answers fit into less.
const LEAST_ANSWER_BYTES: usize = 1 << 20;

impl Target {
    /// `sslmode=require` encrypts, `verify-full` also checks the certificate against the system's authorities or
    /// `sslrootcert`. What `tokio_postgres` does not know is taken out before.
    pub fn parse(url: &str) -> Result<Self> {
        Self::parse_in(url, |name| std::env::var(name).ok())
    }

    /// As [`Target::parse`]. `PGSSLMODE` and `PGSSLROOTCERT` hold where the string says nothing, as in libpq: an environment that
    /// demands TLS must not be passed over.
    pub fn parse_in(url: &str, environment: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let mut options = Options::parse(url)?;
        let given = |name: &str| environment(name).filter(|value| !value.is_empty());
        let mode = options.take("sslmode")?.or_else(|| given("PGSSLMODE"));
        let root = options.take("sslrootcert")?.or_else(|| given("PGSSLROOTCERT"));
        let keeps_statements = switch(options.take("prepared_statements")?.as_deref())?;
        let schema = options.take("schema")?.or_else(|| given("TRUNKLINE_SCHEMA"));
        let schema = Schema::new(schema.as_deref().unwrap_or(Schema::DEFAULT))?;
        let limits = Limits {
            answer: options.take("answer_timeout")?.map(|text| seconds("answer_timeout", &text)).transpose()?.flatten(),
            answer_bytes: options.take("max_answer")?.map_or(Ok(ANSWER_BYTES), |text| bytes(&text))?,
        };
        let mut config: Config = options.rest().parse().map_err(|e: tokio_postgres::Error| {
            Error::invalid(format!("the connection string is not valid: {}", full(&e)))
        })?;
        let (ssl_mode, verify) = encryption(mode.as_deref(), root.is_some())?;
        config.ssl_mode(ssl_mode);
        if !options.has("connect_timeout") {
            config.connect_timeout(CONNECT);
        }
        if config.get_application_name().is_none() {
            config.application_name("trunkline");
        }
        let on_socket = |host: &Host| matches!(host, Host::Unix(_));
        if !config.get_hostaddrs().is_empty() && config.get_hosts().iter().any(on_socket) {
            return Err(Error::invalid("a host that is a folder has a socket and no hostaddr: name one of the two"));
        }
        if config.get_hosts().is_empty() {
            // An address is the name that its certificate must have, as in libpq.
            for address in config.get_hostaddrs().to_vec() {
                config.host(address.to_string());
            }
        }
        if config.get_hosts().iter().all(on_socket) {
            config.ssl_mode(SslMode::Disable);
        }
        let rustls = client_config(verify, root.as_deref())?;
        Ok(Self {
            config,
            tls: MakeTls::new(rustls.clone()),
            rustls: Arc::new(rustls),
            keeps_statements,
            limits,
            schema,
        })
    }
}

impl Target {
    /// Within the time that so many hosts have to take us.
    pub async fn in_time<T>(&self, hosts: usize, work: impl Future<Output = Result<T>>) -> Result<T> {
        let Some(limit) = self.config.get_connect_timeout() else { return work.await };
        let all = limit.saturating_mul(u32::try_from(hosts).unwrap_or(u32::MAX));
        tokio::time::timeout(all, work).await.unwrap_or_else(|_| Err(Error::new(Kind::Unreachable(late(*limit)))))
    }
}

/// Nobody answered within `connect_timeout`.
pub(crate) fn late(limit: Duration) -> io::Error {
    let text = format!("no answer in {} s (connect_timeout)", limit.as_secs_f64());
    io::Error::new(io::ErrorKind::TimedOut, text)
}

/// Whether to encrypt, and whether to ask who the server is.
fn encryption(mode: Option<&str>, root: bool) -> Result<(SslMode, bool)> {
    match mode {
        None | Some("prefer" | "allow") => Ok((SslMode::Prefer, false)),
        Some("disable") => Ok((SslMode::Disable, false)),
        Some("require") => Ok((SslMode::Require, root)),
        Some("verify-full" | "verify-ca") => Ok((SslMode::Require, true)),
        Some(other) => {
            Err(Error::invalid(format!("sslmode={other} is not known: use disable, prefer, require or verify-full")))
        }
    }
}

fn switch(value: Option<&str>) -> Result<bool> {
    match value {
        None | Some("on") => Ok(true),
        Some("off") => Ok(false),
        Some(other) => Err(Error::invalid(format!("prepared_statements={other} is not known: use on or off"))),
    }
}

/// A number of seconds; 0 is no limit.
fn seconds(name: &str, text: &str) -> Result<Option<Duration>> {
    let seconds = text.parse().map(Duration::from_secs);
    let seconds = seconds.map_err(|_| Error::invalid(format!("{name}={text} is not a number of seconds")))?;
    Ok((!seconds.is_zero()).then_some(seconds))
}

/// `64MB`, as Postgres writes sizes.
fn bytes(text: &str) -> Result<usize> {
    let units = [("kB", 1 << 10), ("MB", 1 << 20), ("GB", 1_usize << 30), ("", 1)];
    let found = units.iter().find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, bytes)));
    let size = found.and_then(|(number, bytes)| number.parse::<usize>().ok()?.checked_mul(*bytes));
    size.filter(|size| *size >= LEAST_ANSWER_BYTES).ok_or_else(|| {
        Error::invalid(format!("max_answer={text} is not a size of at least 1MB; write it as in 64MB or 4GB"))
    })
}

fn full(error: &tokio_postgres::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests;
