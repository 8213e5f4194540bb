//! All settings of a connection, and the parser of the `key=value` syntax.

use tokio_postgres::Config;

use super::{
    setting::{Setting, cause},
    url,
};
use crate::error::{Error, Result};

/// The settings that have been given so far. An empty value counts as given, so that no other
/// source supplies the setting.
#[derive(Debug)]
pub(super) struct ConnectionString(Vec<Setting>);

impl ConnectionString {
    pub fn parse(text: &str) -> Result<Self> {
        let of_url = |scheme| text.strip_prefix(scheme).map(url::settings);
        let settings = of_url("postgres://").or_else(|| of_url("postgresql://")).unwrap_or_else(|| words(text))?;
        settings.into_iter().map(Setting::translated).collect::<Result<_>>().map(Self)
    }

    /// Adds the settings whose names have not been given yet. A setting that has been given is not
    /// refused either.
    pub fn fill(&mut self, more: impl IntoIterator<Item = Setting>) -> Result<()> {
        for setting in more {
            if self.has(&setting.name) {
                continue;
            }
            let setting = setting.translated()?;
            // The name may be another one now: `requiressl` becomes `sslmode`.
            if !self.has(&setting.name) {
                self.0.push(setting);
            }
        }
        Ok(())
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|setting| setting.name == name)
    }

    /// Returns a setting. Returns `None` if the setting is missing or empty.
    pub fn get(&self, name: &str) -> Option<&Setting> {
        self.0.iter().rfind(|setting| setting.name == name).filter(|setting| !setting.value.is_empty())
    }

    pub fn into_pairs(self) -> Vec<(String, String)> {
        self.0.into_iter().map(|setting| (setting.name.clone(), setting.value.clone())).collect()
    }

    pub fn remove(&mut self, name: &str) {
        self.0.retain(|setting| setting.name != name);
    }

    /// Removes and returns a setting. Returns an error if the setting is given twice.
    pub fn take(&mut self, name: &str) -> Result<Option<Setting>> {
        let mut taken: Option<Setting> = None;
        for setting in self.0.extract_if(.., |setting| setting.name == name) {
            if taken.replace(setting).is_some() {
                return Err(Error::invalid(format!("the connection string has {name} twice; name it once")));
            }
        }
        Ok(taken)
    }

    pub fn read<T>(&mut self, name: &str, read: impl FnOnce(&str) -> Result<T>) -> Result<Option<T>> {
        let taken = self.take(name)?;
        taken.map(|setting| read(&setting.value).map_err(|error| setting.origin.blamed(error))).transpose()
    }

    /// Returns a configuration with the settings for which `of` returns true.
    pub fn config(&self, of: impl Fn(&str) -> bool) -> Result<Config> {
        // If a setting is given twice, the last one is used, as in libpq.
        let is_last = |at: usize| self.0[at + 1..].iter().all(|later| later.name != self.0[at].name);
        let said = self.0.iter().enumerate().filter(|(at, setting)| of(&setting.name) && is_last(*at));
        let said = said.map(|(_, setting)| setting).filter(|setting| !setting.value.is_empty());
        let words: String = said.map(Setting::words).collect::<Result<_>>()?;
        words.parse().map_err(|error| Error::invalid(format!("the connection string is not valid: {}", cause(&error))))
    }
}

/// Returns true for the white space of libpq. Other white space belongs to names and values.
pub(super) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t'..='\r')
}

/// Parses a list of `key = value` and `key='a value'`. A backslash escapes the next character.
fn words(text: &str) -> Result<Vec<Setting>> {
    let invalid = |why: &str| Error::invalid(format!("the connection string is not valid: {why}"));
    let (mut words, mut rest) = (Vec::new(), text.trim_start_matches(is_space));
    while !rest.is_empty() {
        let end = rest.find(|c: char| c == '=' || is_space(c)).unwrap_or(rest.len());
        let (key, after) = rest.split_at(end);
        // These two errors do not quote the text, because it may contain a password.
        if key.contains(':') {
            return Err(invalid("a URL begins with postgres:// or postgresql://, and an option's name has no colon"));
        }
        let after = after.trim_start_matches(is_space).strip_prefix('=').filter(|_| !key.is_empty());
        let after = after.ok_or_else(|| invalid("an option has no name or no value"))?;
        let (value, after) = value(after.trim_start_matches(is_space))
            .ok_or_else(|| invalid(&format!("the quotes of {key} do not end")))?;
        words.push(Setting::in_text(key, value));
        rest = after.trim_start_matches(is_space);
    }
    Ok(words)
}

/// Splits the text into its first value and the rest. Returns `None` if a quote is not closed.
fn value(text: &str) -> Option<(String, &str)> {
    let (quoted, text) = text.strip_prefix('\'').map_or((false, text), |text| (true, text));
    let (mut value, mut chars) = (String::new(), text.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => value.extend(chars.next().map(|(_, c)| c)),
            '\'' if quoted => return Some((value, &text[at + 1..])),
            c if is_space(c) && !quoted => return Some((value, &text[at..])),
            c => value.push(c),
        }
    }
    (!quoted).then_some((value, ""))
}
