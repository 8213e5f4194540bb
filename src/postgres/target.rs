//! Connection strings, parsed into hosts, settings and TLS. `sslmode` means the same as in libpq.

mod setting;
mod url;
mod connection_string;
mod environment;
mod service_file;
mod hosts;
mod password_file;
mod tls_files;
mod revocation;
mod trust;
mod handshake;
mod tls;
mod current_tls;

use std::{io, path::Path, slice, sync::Arc, time::Duration};

use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};

pub(crate) use self::trust::explained;
use self::{
    connection_string::ConnectionString,
    current_tls::CurrentTls,
    environment::Environment,
    handshake::Handshake,
    hosts::{Hosts, is_about_hosts},
    tls::Check,
    tls_files::TlsFiles,
};
use crate::{
    error::{Error, Kind, Result},
    postgres::sql::Schema,
};

#[derive(Clone)]
pub(crate) struct Target {
    /// The parsed string. Its `sslmode` determines whether connections are encrypted. `tls`
    /// determines which servers are trusted.
    pub config: Config,
    /// One configuration per host if the hosts have different passwords, otherwise empty.
    apart: Vec<Config>,
    pub tls: Arc<CurrentTls>,
    /// True if connections keep prepared statements. If false, the server parses a statement again
    /// at each use, which a pooler in transaction mode requires.
    pub keeps_statements: bool,
    pub limits: AnswerLimits,
    pub schema: Schema,
    /// True if other servers can accept writes. Connections of the class `Store` are then tried
    /// once.
    pub is_of_several: bool,
    /// True if the connection string, its service or the environment sets the connect timeout.
    has_timeout: bool,
}

/// Limits on the time and the memory that a reply may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerLimits {
    /// The maximum time that a server may be silent while a reply is due.
    pub answer: Option<Duration>,
    /// The maximum number of bytes of a reply that are kept in memory.
    pub answer_bytes: usize,
}

impl Default for AnswerLimits {
    fn default() -> Self {
        Self { answer: None, answer_bytes: ANSWER_BYTES }
    }
}

/// The default timeout for connecting to a host, with the login. `connect_timeout` overrides it.
const CONNECT: Duration = Duration::from_secs(10);
/// The default timeout for connecting to a host, if other servers can be used instead.
const CONNECT_OF_SEVERAL: Duration = Duration::from_secs(2);
/// The default maximum size of a reply in bytes. `max_answer` overrides it.
const ANSWER_BYTES: usize = 2 << 30;
const LEAST_ANSWER_BYTES: usize = 1 << 20;
/// The maximum of `answer_timeout`. A longer time could overflow an `Instant`.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 86_400);

impl Target {
    /// Parses a connection string. `sslmode=require` encrypts. `verify-ca` also checks that the
    /// certificate is signed by an authority in `sslrootcert`, and `verify-full` also checks the
    /// server's name in the certificate. Settings that `tokio_postgres` does not support are
    /// removed before it parses the rest.
    pub fn parse(url: &str) -> Result<Self> {
        Self::parse_in(url, variable)
    }

    /// Parses a connection string in the given environment. A missing setting comes from the named
    /// service, then from the environment variables. A missing password can then come from a
    /// password file.
    pub fn parse_in(url: &str, environment: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let environment = Environment(&environment);
        let mut options = settings_of(url, environment)?;
        options.fill(environment.settings())?;
        let files = TlsFiles::of(&mut options, environment)?;
        let handshake = Handshake::of(&mut options)?;
        let mode = options.read("sslmode", |mode| encryption(mode, &files))?;
        let (mut ssl_mode, check) = match files.is_root_of_system {
            true => mode.unwrap_or((SslMode::Require, Check::AuthorityAndName)),
            false => mode.unwrap_or((SslMode::Prefer, Check::Nothing)),
        };
        let keeps_statements = options.read("prepared_statements", switch)?.unwrap_or(true);
        let schema = schema_in(&mut options, environment)?;
        let limits = AnswerLimits {
            answer: options.read("answer_timeout", |text| seconds("answer_timeout", text))?.flatten(),
            answer_bytes: options.read("max_answer", bytes)?.unwrap_or(ANSWER_BYTES),
        };
        let user_timeout = options.read("tcp_user_timeout", milliseconds)?.flatten();
        let password_file = password_file::file(&mut options, environment)?;
        let hosts = Hosts::of(&mut options)?;
        if hosts.all_on_sockets() {
            ssl_mode = SslMode::Disable;
        } else if ssl_mode != SslMode::Require {
            refuse_direct_tls(&options)?;
        }
        let mut rest = options.config(|name| !is_about_hosts(name))?;
        rest.ssl_mode(ssl_mode);
        if let Some(limit) = user_timeout {
            rest.tcp_user_timeout(limit);
        }
        let has_timeout = options.get("connect_timeout").is_some();
        if !has_timeout {
            rest.connect_timeout(CONNECT);
        }
        if rest.get_application_name().is_none() {
            rest.application_name("trunkline");
        }
        let apart = with_passwords(&mut rest, &hosts, password_file.as_deref());
        let tls = match ssl_mode {
            SslMode::Disable => CurrentTls::of(Check::Nothing, false, handshake, TlsFiles::default())?,
            mode => CurrentTls::of(check, mode == SslMode::Prefer, handshake, files)?,
        };
        Ok(Self {
            config: hosts.all(&rest),
            apart,
            tls: Arc::new(tls),
            keeps_statements,
            limits,
            schema,
            is_of_several: false,
            has_timeout,
        })
    }

    /// Returns the schema of a connection string, without the files that a connection needs. The
    /// other variables are not read, because the caller may connect with another driver.
    pub fn schema_of(url: &str) -> Result<Schema> {
        let environment = Environment(&variable);
        schema_in(&mut settings_of(url, environment)?, environment)
    }

    pub fn settings(text: &str) -> Result<Vec<(String, String)>> {
        Ok(ConnectionString::parse(text)?.into_pairs())
    }

    /// Adapts the target to a server that is one of several with the same queues: shortens the
    /// connect timeout, unless it is set explicitly.
    pub fn of_several(mut self) -> Self {
        self.is_of_several = true;
        if !self.has_timeout {
            for config in std::iter::once(&mut self.config).chain(&mut self.apart) {
                config.connect_timeout(CONNECT_OF_SEVERAL);
            }
        }
        self
    }

    /// Returns the hosts, the ports and the database, without secrets.
    pub fn place(&self) -> String {
        let ports = self.config.get_ports();
        let host = |(at, host): (usize, &Host)| {
            let name = match host {
                Host::Tcp(name) => name.clone(),
                Host::Unix(folder) => folder.display().to_string(),
            };
            ports.get(at).or(ports.first()).map_or(name.clone(), |port| format!("{name}:{port}"))
        };
        let hosts: Vec<String> = self.config.get_hosts().iter().enumerate().map(host).collect();
        let database = self.config.get_dbname().map_or_else(String::new, |name| format!("/{name}"));
        format!("{}{database}", hosts.join(","))
    }

    pub fn configs(&self) -> &[Config] {
        if self.apart.is_empty() { slice::from_ref(&self.config) } else { &self.apart }
    }
}

/// Returns a variable of the process. Replaces bytes that are not UTF-8, so that the value is
/// refused and not ignored.
fn variable(name: &str) -> Option<String> {
    Some(std::env::var_os(name)?.to_string_lossy().into_owned())
}

/// Returns the settings of a connection string and of its service.
fn settings_of(url: &str, environment: Environment<'_>) -> Result<ConnectionString> {
    let mut options = ConnectionString::parse(url)?;
    let of_service = service_file::settings(&mut options, environment)?;
    options.fill(of_service)?;
    Ok(options)
}

fn schema_in(options: &mut ConnectionString, environment: Environment<'_>) -> Result<Schema> {
    options.fill(environment.schema())?;
    options.read("schema", Schema::new)?.map_or_else(|| Schema::new(Schema::DEFAULT), Ok)
}

/// Adds the passwords of the password file if no password is given. If the hosts have different
/// passwords, returns one configuration per host.
fn with_passwords(config: &mut Config, hosts: &Hosts, file: Option<&Path>) -> Vec<Config> {
    let user = config.get_user().map(str::to_owned).or_else(|| whoami::username().ok());
    let (Some(file), Some(user), None) = (file, user, config.get_password()) else { return Vec::new() };
    let database = config.get_dbname().unwrap_or(&user).to_owned();
    let passwords = password_file::passwords(file, hosts, &user, &database);
    let Some(first) = passwords.first() else { return Vec::new() };
    if !hosts.are_paired() || passwords.iter().all(|password| password == first) {
        if let Some(password) = first {
            config.password(password);
        }
        return Vec::new();
    }
    let one = |(at, password): (usize, &Option<String>)| {
        let mut config = hosts.one(config, at);
        if let Some(password) = password {
            config.password(password);
        }
        config
    };
    passwords.iter().enumerate().map(one).collect()
}

impl Target {
    /// Runs `work` within the connect timeout, multiplied by the number of hosts.
    pub async fn in_time<T>(&self, hosts: usize, work: impl Future<Output = Result<T>>) -> Result<T> {
        let Some(limit) = self.config.get_connect_timeout() else { return work.await };
        let all = limit.saturating_mul(u32::try_from(hosts).unwrap_or(u32::MAX));
        tokio::time::timeout(all, work).await.unwrap_or_else(|_| Err(Error::new(Kind::Unreachable(late(*limit)))))
    }
}

/// Creates the error for a host that did not answer within `connect_timeout`.
pub(crate) fn late(limit: Duration) -> io::Error {
    let text = format!("no answer in {} s (connect_timeout)", limit.as_secs_f64());
    io::Error::new(io::ErrorKind::TimedOut, text)
}

/// Returns whether to encrypt and what to check. The modes have the same meaning as in libpq, with
/// two exceptions: `allow` encrypts if the server supports encryption, and `allow` and `prefer`
/// never try again without encryption.
fn encryption(mode: &str, files: &TlsFiles) -> Result<(SslMode, Check)> {
    let has_root = files.root.is_some() || files.is_root_of_system;
    let found = match mode {
        "prefer" | "allow" => (SslMode::Prefer, Check::Nothing),
        "disable" => (SslMode::Disable, Check::Nothing),
        // If a root certificate is given, `require` means `verify-ca`, as in libpq.
        "require" if !has_root => (SslMode::Require, Check::Nothing),
        "verify-ca" if !has_root => {
            return Err(Error::invalid(
                "sslmode=verify-ca needs the certificate of the authority: name it with sslrootcert=FILE, write it to \
                 ~/.postgresql/root.crt, or use sslmode=verify-full, which trusts the authorities of the system",
            ));
        }
        "require" | "verify-ca" => (SslMode::Require, Check::Authority),
        "verify-full" => (SslMode::Require, Check::AuthorityAndName),
        other => {
            return Err(Error::invalid(format!(
                "sslmode={other} is not known: use disable, allow, prefer, require, verify-ca or verify-full"
            )));
        }
    };
    if files.is_root_of_system && found.1 != Check::AuthorityAndName {
        return Err(Error::invalid(format!("sslmode={mode} is too weak for sslrootcert=system: use verify-full")));
    }
    Ok(found)
}

/// Returns an error for `sslnegotiation=direct`, which requires encryption.
fn refuse_direct_tls(options: &ConnectionString) -> Result<()> {
    let why = "sslnegotiation=direct needs sslmode=require, verify-ca or verify-full";
    match options.get("sslnegotiation") {
        Some(setting) if setting.value == "direct" => Err(setting.origin.blamed(Error::invalid(why))),
        _ => Ok(()),
    }
}

fn switch(value: &str) -> Result<bool> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        other => Err(Error::invalid(format!("prepared_statements={other} is not known: use on or off"))),
    }
}

/// Parses a number of seconds. 0 means no limit. The result is at most [`LONGEST`].
fn seconds(name: &str, text: &str) -> Result<Option<Duration>> {
    let seconds = text.parse().map(Duration::from_secs);
    let seconds = seconds.map_err(|_| Error::invalid(format!("{name}={text} is not a number of seconds")))?;
    Ok((!seconds.is_zero()).then_some(seconds.min(LONGEST)))
}

/// Parses `tcp_user_timeout` in milliseconds, as in libpq; `tokio_postgres` would read seconds. 0
/// or less means the system's default.
fn milliseconds(text: &str) -> Result<Option<Duration>> {
    if text.is_empty() {
        return Ok(None);
    }
    let number: i32 =
        text.parse().map_err(|_| Error::invalid(format!("tcp_user_timeout={text} is not a number of milliseconds")))?;
    Ok(u64::try_from(number).ok().filter(|number| *number > 0).map(Duration::from_millis))
}

/// Parses a size in PostgreSQL's notation, such as `64MB`.
fn bytes(text: &str) -> Result<usize> {
    let units = [("kB", 1 << 10), ("MB", 1 << 20), ("GB", 1_usize << 30), ("", 1)];
    let found = units.iter().find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, bytes)));
    let size = found.and_then(|(number, bytes)| number.parse::<usize>().ok()?.checked_mul(*bytes));
    size.filter(|size| *size >= LEAST_ANSWER_BYTES).ok_or_else(|| {
        Error::invalid(format!("max_answer={text} is not a size of at least 1MB; write it as in 64MB or 4GB"))
    })
}

#[cfg(test)]
mod tests;
