//! What a connection string asks for: hosts, who, and TLS with libpq's meaning of `sslmode`.

mod tls;

use std::sync::Arc;

use rustls::ClientConfig;
use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};

pub(crate) use self::tls::MakeTls;
use self::tls::client_config;
use crate::error::{Error, Result};

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
}

impl Target {
    /// `sslmode=require` encrypts, `verify-full` also checks the certificate against the system's authorities or
    /// `sslrootcert`. `tokio_postgres` knows neither `verify-full` nor `sslrootcert`, so they are taken out before.
    pub fn parse(url: &str) -> Result<Self> {
        let (url, mode) = take_option(url, "sslmode");
        let (url, root) = take_option(&url, "sslrootcert");
        let (url, kept) = take_option(&url, "prepared_statements");
        let keeps_statements = match kept.as_deref() {
            None | Some("on") => true,
            Some("off") => false,
            Some(other) => {
                return Err(Error::invalid(format!("prepared_statements={other} is not known: use on or off")));
            }
        };
        let mut config: Config = url.parse().map_err(|e: tokio_postgres::Error| {
            Error::invalid(format!("the connection string is not valid: {}", full(&e)))
        })?;
        let verify = match mode.as_deref() {
            None | Some("prefer" | "allow") => false,
            Some("disable") => {
                config.ssl_mode(SslMode::Disable);
                false
            }
            Some("require") => {
                config.ssl_mode(SslMode::Require);
                root.is_some()
            }
            Some("verify-full" | "verify-ca") => {
                config.ssl_mode(SslMode::Require);
                true
            }
            Some(other) => {
                return Err(Error::invalid(format!(
                    "sslmode={other} is not known: use disable, prefer, require or verify-full"
                )));
            }
        };
        if config.get_application_name().is_none() {
            config.application_name("trunkline");
        }
        if config.get_hosts().is_empty() {
            // An address is the name that its certificate must have, as in libpq.
            for address in config.get_hostaddrs().to_vec() {
                config.host(address.to_string());
            }
        }
        if config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_))) {
            config.ssl_mode(SslMode::Disable);
        }
        let rustls = client_config(verify, root.as_deref())?;
        Ok(Self { config, tls: MakeTls::new(rustls.clone()), rustls: Arc::new(rustls), keeps_statements })
    }
}

fn full(error: &tokio_postgres::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Takes `name=value` out of a URL's query or a list of words.
fn take_option(url: &str, name: &str) -> (String, Option<String>) {
    let (head, options, separator) = if url.contains("://") {
        match url.split_once('?') {
            Some((head, query)) => (head, query, '&'),
            None => return (url.to_owned(), None),
        }
    } else {
        ("", url, ' ')
    };
    let mut value = None;
    let kept: Vec<&str> = options
        .split(separator)
        .filter(|option| match option.split_once('=') {
            Some((key, found)) if key.trim() == name => {
                value = Some(found.trim().trim_matches('\'').replace("%2F", "/").replace("%2f", "/"));
                false
            }
            _ => true,
        })
        .collect();
    let kept = kept.join(&separator.to_string());
    let rest = match (head, kept.as_str()) {
        ("", options) => options.to_owned(),
        (head, "") => head.to_owned(),
        (head, options) => format!("{head}?{options}"),
    };
    (rest, value)
}

#[cfg(test)]
mod tests {
    use super::take_option;

    #[test]
    fn an_option_leaves_a_url_or_a_list_of_words() {
        for (from, rest, value) in [
            ("postgres://h/d?sslmode=require", "postgres://h/d", Some("require")),
            ("postgres://h/d?a=b&sslmode=require&c=d", "postgres://h/d?a=b&c=d", Some("require")),
            ("postgres://h/d", "postgres://h/d", None),
            ("host=h sslmode=verify-full dbname=d", "host=h dbname=d", Some("verify-full")),
            ("host=h dbname=d", "host=h dbname=d", None),
        ] {
            let (left, found) = take_option(from, "sslmode");
            assert_eq!((left.as_str(), found.as_deref()), (rest, value), "{from}");
        }
    }
}
