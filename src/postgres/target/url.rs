//! The parser for connection strings in URL form.

use super::setting::Setting;
use crate::error::{Error, Result};

/// Parses the settings in a URL without its scheme. An empty part counts as missing, as in libpq.
pub(super) fn settings(rest: &str) -> Result<Vec<Setting>> {
    // Compares positions, because a password may contain a question mark, and an option an at sign.
    let end = |mark: char| rest.find(mark).unwrap_or(rest.len());
    let (at, slash, question) = (end('@'), end('/'), end('?'));
    let has_login = at < rest.len() && (at < slash || at < question);
    let (login, place) = if has_login { (&rest[..at], &rest[at + 1..]) } else { ("", rest) };
    let (place, query) = place.split_once('?').unwrap_or((place, ""));
    let (hosts, database) = place.split_once('/').unwrap_or((place, ""));
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let (hosts, ports) = places(hosts)?;
    let mut settings = Vec::new();
    for (name, value) in [("user", user), ("password", password), ("dbname", database)] {
        // The error does not quote the text, because the text may be part of a password.
        let value = decoded(value).ok_or_else(|| not_utf8(&format!("the {name}")))?;
        settings.push(Setting::in_text(name, value));
    }
    settings.push(Setting::in_text("host", hosts));
    settings.push(Setting::in_text("port", ports));
    settings.retain(|setting| !setting.value.is_empty());
    for option in query.split('&').filter(|option| !option.is_empty()) {
        let (key, value) = option.split_once('=').ok_or_else(|| without_value(option, query))?;
        let [key, value] = [key, value].map(|text| decoded(text).ok_or_else(|| not_utf8("an option")));
        settings.push(Setting::in_text(key?, value?));
    }
    Ok(settings)
}

/// Returns the hosts and their ports as comma-separated lists. The ports are empty if none is
/// given.
fn places(text: &str) -> Result<(String, String)> {
    let invalid = || Error::invalid("the connection string is not valid: invalid value for option `host`");
    let (mut hosts, mut ports) = (Vec::new(), Vec::new());
    for place in text.split(',') {
        // The error does not quote the text, because it may be part of a password with an at sign.
        if place.contains('@') {
            return Err(Error::invalid(
                "the connection string is not valid: the host has an @; in a user or a password, write @ as %40",
            ));
        }
        let (host, port) = match place.strip_prefix('[') {
            Some(address) => match address.split_once(']').ok_or_else(invalid)? {
                (host, "") => (host, ""),
                (host, port) => (host, port.strip_prefix(':').ok_or_else(invalid)?),
            },
            None => place.split_once(':').unwrap_or((place, "")),
        };
        hosts.push(decoded(host).ok_or_else(|| not_utf8("a host"))?);
        ports.push(decoded(port).ok_or_else(|| not_utf8("a port"))?);
    }
    let named = ports.iter().any(|port| !port.is_empty());
    Ok((hosts.join(","), if named { ports.join(",") } else { String::new() }))
}

/// Returns the error for an option without a value. With an at sign in the query, the option may be
/// part of a password that contains `@` and `?`. Then the error does not quote the option.
fn without_value(option: &str, query: &str) -> Error {
    Error::invalid(match query.contains('@') {
        true => {
            "an option of the connection string has no value; in a password, write @ as %40 and ? as %3F".to_owned()
        }
        false => format!("the option {option:?} of the connection string has no value"),
    })
}

fn not_utf8(what: &str) -> Error {
    Error::invalid(format!("{what} of the connection string is not UTF-8"))
}

fn decoded(text: &str) -> Option<String> {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        (rest, ()) = match (first, digit(after.first()), digit(after.get(1))) {
            (b'%', Some(high), Some(low)) => (&after[2..], bytes.push((high * 16 + low) as u8)),
            _ => (after, bytes.push(*first)),
        };
    }
    String::from_utf8(bytes).ok()
}
