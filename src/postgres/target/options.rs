//! The options of a connection string, read as libpq reads them.

use std::fmt::Write;

use crate::error::{Error, Result};

/// What a connection string consists of.
#[derive(Debug)]
pub(super) struct Options {
    /// Of a URL, all before its options; nothing of words.
    head: Option<String>,
    options: Vec<(String, String)>,
}

impl Options {
    pub fn parse(text: &str) -> Result<Self> {
        for scheme in ["postgres://", "postgresql://"] {
            if let Some(rest) = text.strip_prefix(scheme) {
                return of_url(scheme, rest);
            }
        }
        Ok(Self { head: None, options: words(text)? })
    }

    /// Takes an option out. Twice with two meanings, it would be a guess which of them counts.
    pub fn take(&mut self, name: &str) -> Result<Option<String>> {
        let mut taken: Option<String> = None;
        for (_, value) in self.options.extract_if(.., |(key, _)| key == name) {
            if taken.replace(value).is_some() {
                return Err(Error::invalid(format!("the connection string has {name} twice; name it once")));
            }
        }
        Ok(taken)
    }

    pub fn has(&self, name: &str) -> bool {
        self.options.iter().any(|(key, _)| key == name)
    }

    /// The string without what was taken.
    pub fn rest(&self) -> String {
        let mut rest = self.head.clone().unwrap_or_default();
        for (at, (key, value)) in self.options.iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = match (&self.head, at) {
                (Some(_), 0) => write!(rest, "?{}={}", encoded(key), encoded(value)),
                (Some(_), _) => write!(rest, "&{}={}", encoded(key), encoded(value)),
                (None, _) => write!(rest, "{key}='{}' ", value.replace('\\', "\\\\").replace('\'', "\\'")),
            };
        }
        rest
    }
}

fn of_url(scheme: &str, rest: &str) -> Result<Options> {
    // A password may have a question mark in it, and an option an at sign.
    let end = |mark: char| rest.find(mark).unwrap_or(rest.len());
    let (at, slash, question) = (end('@'), end('/'), end('?'));
    let has_login = at < rest.len() && (at < slash || at < question);
    let (login, place) = rest.split_at(if has_login { at + 1 } else { 0 });
    let (place, query) = place.split_once('?').unwrap_or((place, ""));
    // The parser of the rest would take what is before any at sign for a login.
    let place = if has_login { place.to_owned() } else { place.replace('@', "%40") };
    let options = query.split('&').filter(|option| !option.is_empty()).map(|option| {
        let (key, value) = option
            .split_once('=')
            .ok_or_else(|| Error::invalid(format!("the option {option:?} of the connection string has no value")))?;
        Ok((decoded(key)?, decoded(value)?))
    });
    Ok(Options { options: options.collect::<Result<_>>()?, head: Some(format!("{scheme}{login}{place}")) })
}

fn decoded(text: &str) -> Result<String> {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        (rest, ()) = match (first, digit(after.first()), digit(after.get(1))) {
            (b'%', Some(high), Some(low)) => (&after[2..], bytes.push((high * 16 + low) as u8)),
            _ => (after, bytes.push(*first)),
        };
    }
    String::from_utf8(bytes).map_err(|_| Error::invalid(format!("{text:?} of the connection string is not UTF-8")))
}

fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/:,".contains(&byte);
    text.bytes().fold(String::with_capacity(text.len()), |mut encoded, byte| {
        if plain(byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}"); // writing to a string cannot fail
        }
        encoded
    })
}

/// `key = value` and `key='a value'`, where a backslash keeps what follows as it is.
fn words(text: &str) -> Result<Vec<(String, String)>> {
    let (mut words, mut rest) = (Vec::new(), text.trim_start());
    while !rest.is_empty() {
        let end = rest.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(rest.len());
        let (key, after) = rest.split_at(end);
        let after = after.trim_start().strip_prefix('=').filter(|_| !key.is_empty()).ok_or_else(|| {
            // Without the text: it may be a part of a password.
            Error::invalid("the connection string is not valid: an option has no name or no value")
        })?;
        let (value, after) = value(after.trim_start()).ok_or_else(|| {
            Error::invalid(format!("the connection string is not valid: the quotes of {key} do not end"))
        })?;
        words.push((key.to_owned(), value));
        rest = after.trim_start();
    }
    Ok(words)
}

/// The value at the front, and what follows it; none where its quotes do not end.
fn value(text: &str) -> Option<(String, &str)> {
    let (quoted, text) = text.strip_prefix('\'').map_or((false, text), |text| (true, text));
    let (mut value, mut chars) = (String::new(), text.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => value.extend(chars.next().map(|(_, c)| c)),
            '\'' if quoted => return Some((value, &text[at + 1..])),
            c if c.is_whitespace() && !quoted => return Some((value, &text[at..])),
            c => value.push(c),
        }
    }
    (!quoted).then_some((value, ""))
}
