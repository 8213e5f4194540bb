//! The TLS handshake: the versions that the client offers, and whether it sends the server's name.

use rustls::{
    SupportedProtocolVersion,
    version::{TLS12, TLS13},
};

use super::connection_string::ConnectionString;
use crate::error::{Error, Result};

/// libpq's names of the versions of TLS, from the oldest to the newest. The library supports the
/// last two.
const VERSIONS: [&str; 4] = ["TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"];
const OLDEST: usize = 2;
const NEWEST: usize = 3;

#[derive(Debug)]
pub(super) struct Handshake {
    pub versions: Vec<&'static SupportedProtocolVersion>,
    /// True if the client sends the server's name unencrypted. A proxy can need the name to find
    /// the server.
    pub sends_name: bool,
}

impl Handshake {
    pub fn of(options: &mut ConnectionString) -> Result<Self> {
        let (least, most) = ("ssl_min_protocol_version", "ssl_max_protocol_version");
        let lowest = options.read(least, |text| version(least, text))?.flatten().unwrap_or(OLDEST).max(OLDEST);
        let highest = options.read(most, |text| match version(most, text)? {
            Some(highest) if highest < lowest => Err(Error::invalid(format!(
                "{most}={text} leaves no version of TLS: the oldest that is permitted is {}",
                VERSIONS[lowest]
            ))),
            highest => Ok(highest),
        })?;
        let range = lowest..=highest.flatten().unwrap_or(NEWEST);
        let supported = [(OLDEST, &TLS12), (NEWEST, &TLS13)].into_iter();
        let versions = supported.filter(|(at, _)| range.contains(at)).map(|(_, version)| version).collect();
        Ok(Self { versions, sends_name: options.read("sslsni", sends_name)?.unwrap_or(true) })
    }
}

/// Parses the name of a version, and returns its position in [`VERSIONS`].
fn version(setting: &str, text: &str) -> Result<Option<usize>> {
    let found = VERSIONS.iter().position(|known| known.eq_ignore_ascii_case(text));
    if found.is_none() && !text.is_empty() {
        return Err(Error::invalid(format!("{setting}={text} is not known: use TLSv1.2 or TLSv1.3")));
    }
    Ok(found)
}

/// Parses `sslsni`.
fn sends_name(value: &str) -> Result<bool> {
    match value {
        "1" | "" => Ok(true),
        "0" => Ok(false),
        other => Err(Error::invalid(format!("sslsni={other} is not known: use 0 or 1"))),
    }
}
