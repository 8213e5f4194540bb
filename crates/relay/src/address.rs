//! Addresses of brokers: `SCHEME://USER:PASSWORD@HOST:PORT,HOST:PORT/PATH?NAME=VALUE`.

use std::str::FromStr;

use percent_encoding::percent_decode_str;

use crate::error::Error;

/// A broker's address, including the topic, subject or stream.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// The scheme, which names the kind of broker.
    pub scheme: String,
    /// The user, password, hosts and ports.
    pub servers: String,
    /// The topic, subject or stream. An address for a relay out of a queue may contain a route
    /// here.
    pub path: String,
    /// The options' names and values, in order.
    pub options: Vec<(String, String)>,
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bad = |why: &str| Error::usage(format!("the address {:?} cannot be used: {why}", shown(text)));
        let (scheme, rest) = text.split_once("://").ok_or_else(|| bad("it has no scheme, such as nats://"))?;
        if cuts_login(rest) {
            return Err(Error::usage("the address cannot be used: escape / in the password as %2F, and ? as %3F"));
        }
        let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (servers, path) =
            rest.split_once('/').ok_or_else(|| bad("it names no topic, subject or stream: …/NAME"))?;
        if servers.is_empty() || path.is_empty() {
            return Err(bad("it needs a host and a topic, subject or stream: SCHEME://HOST/NAME"));
        }
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let option = |one: &str| {
            let (name, value) = one.split_once('=').ok_or_else(|| bad("an option is NAME=VALUE"))?;
            Ok((decoded(name), decoded(value)))
        };
        let options = options.split('&').filter(|one| !one.is_empty()).map(option).collect::<Result<_, Error>>()?;
        Ok(Self { scheme: scheme.to_owned(), servers: servers.to_owned(), path: decoded(path), options })
    }
}

impl Address {
    /// Returns the servers, each prefixed with `SCHEME://`.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        self.servers.split(',').map(|server| format!("{}://{server}", self.scheme)).collect()
    }

    /// Returns the address without user and password.
    #[must_use]
    pub fn shown(&self) -> String {
        format!("{}/{}", shown(&format!("{}://{}", self.scheme, self.servers)), self.path)
    }

    /// Returns the value of an option.
    ///
    /// # Errors
    /// If the value is invalid.
    pub fn option<T: FromStr>(&self, name: &str) -> Result<Option<T>, Error> {
        let Some((_, value)) = self.options.iter().find(|(known, _)| known == name) else { return Ok(None) };
        value.parse().map(Some).map_err(|_| Error::usage(format!("{name}={value} of {} cannot be read", self.shown())))
    }

    /// Returns the certificates that `ca=FILE` names, in PEM. They verify the server.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn authorities(&self) -> Result<Option<String>, Error> {
        let Some(file) = self.option::<String>("ca")? else { return Ok(None) };
        let read = std::fs::read_to_string(&file);
        read.map(Some).map_err(|cause| Error::usage(format!("ca={file} of {} cannot be read: {cause}", self.shown())))
    }

    /// Fails if the address has an option that is not among `known`.
    ///
    /// # Errors
    /// If there is such an option. The error names it.
    pub fn only(&self, known: &[&str]) -> Result<(), Error> {
        match self.options.iter().find(|(name, _)| !known.contains(&&**name)) {
            None => Ok(()),
            Some((name, _)) => {
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                Err(Error::usage(format!("{} has no option {name:?}; there are: {known}", self.shown())))
            }
        }
    }
}

impl std::fmt::Debug for Address {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.shown())
    }
}

/// Returns true if the password of an address probably contains an unescaped `/` or `?`: an `@`
/// follows this sign, and a port before it is not a number.
fn cuts_login(rest: &str) -> bool {
    let (servers, after) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let hosts = servers.rsplit_once('@').map_or(servers, |(_, hosts)| hosts);
    let has_other_port = |host: &str| {
        let end = host.rfind(']').map_or(0, |end| end + 1); // an IPv6 address contains colons
        host[end..].split_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_err())
    };
    after.contains('@') && hosts.split(',').any(has_other_port)
}

/// Removes user and password from an address.
fn shown(address: &str) -> String {
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let host = |one: &str| one[one.rfind('@').map_or(0, |at| at + 1)..].to_owned();
    let hosts: Vec<_> = rest[..end].split(',').map(host).collect();
    let joint = if scheme.is_empty() { "" } else { "://" };
    let path = rest[end..].split('?').next().unwrap_or_default();
    format!("{scheme}{joint}{}{path}", hosts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        let address: Address =
            "nats://me:secret@host:4222,me:p@other/orders.{key}?x=1%2F2".parse().expect("an address");
        assert_eq!(address.shown(), "nats://host:4222,other/orders.{key}");
        assert_eq!(address.urls(), ["nats://me:secret@host:4222", "nats://me:p@other"]);
        assert_eq!(address.option::<String>("x").expect("text").as_deref(), Some("1/2"));
        assert!(address.only(&["y"]).is_err());
    }

    #[test]
    fn what_is_no_address_is_refused_without_its_password() {
        for bad in ["nats", "nats://u:secret@host", "nats://u:secret@host/", "nats:///x"] {
            let error = bad.parse::<Address>().expect_err(bad).to_string();
            assert!(!error.contains("secret"), "{error}");
        }
        for bad in ["u:secret/or@host/x", "u:se/cret@host/x", "u:secret?or@host/x", "h:1,u:secret/or@[::1]:4222/x"] {
            let error = format!("nats://{bad}").parse::<Address>().expect_err(bad).to_string();
            assert!(error.contains("%2F") && !error.contains("u:se") && !error.contains("cret"), "{error}");
        }
        for good in
            ["u:p%2Fw@host/a@b", "u:p,w@host/a@b", "host:4222/a@b", "[::1]:4222/a@b", "[::1]/x?y=a@b", "u:p@host/x"]
        {
            format!("nats://{good}").parse::<Address>().expect(good);
        }
    }
}
