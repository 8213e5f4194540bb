//! Password files, which map a host, a port, a database and a user to a password.

use std::path::{Path, PathBuf};

use tracing::warn;

use super::{connection_string::ConnectionString, environment::Environment, hosts::Hosts, setting::Setting};
use crate::error::Result;

#[derive(Debug, Clone, Copy)]
struct Login<'a> {
    /// The names of the host. A socket in a default directory has two: the directory and
    /// `localhost`.
    hosts: &'a [String],
    port: u16,
    database: &'a str,
    user: &'a str,
}

/// Returns the path of the password file, if one is configured or has a default path.
pub(super) fn file(options: &mut ConnectionString, environment: Environment<'_>) -> Result<Option<PathBuf>> {
    let named = options.take("passfile")?.map(|Setting { value, .. }| value).filter(|value| !value.is_empty());
    Ok(named.map(PathBuf::from).or_else(|| environment.file_at_home(".pgpass", "pgpass.conf")))
}

/// Returns the password of each host. If the file cannot be used, returns no passwords instead of
/// an error, because the server may not require a password.
pub(super) fn passwords(file: &Path, hosts: &Hosts, user: &str, database: &str) -> Vec<Option<String>> {
    let text = kept_to_oneself(file).unwrap_or_default();
    let password = |at| {
        let (names, port) = hosts.names(at);
        find(&text, Login { hosts: &names, port, database, user })
    };
    (0..hosts.len()).map(password).collect()
}

/// Reads a file. Returns `None` if the file cannot be read, or if other users can access it.
fn kept_to_oneself(file: &Path) -> Option<String> {
    let about = std::fs::metadata(file).ok()?; // usually, the file does not exist
    if !about.is_file() {
        warn!("the password file {} is not read: it is not a plain file", file.display());
        return None;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if about.permissions().mode() & 0o077 != 0 {
            warn!("the password file {0} is not read: others have access to it; chmod 600 {0}", file.display());
            return None;
        }
    }
    std::fs::read_to_string(file)
        .inspect_err(|error| warn!("the password file {} is not read: {error}", file.display()))
        .ok()
}

/// Returns the password in the first line that matches the login.
fn find(text: &str, login: Login<'_>) -> Option<String> {
    let port = login.port.to_string();
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let [host, at_port, database, user, password, ..] = &*fields else { return None };
        let is = |field: &Field, value: &str| field.is_any || field.text == value;
        let is_it = (host.is_any || login.hosts.contains(&host.text))
            && is(at_port, &port)
            && is(database, login.database)
            && is(user, login.user);
        is_it.then(|| password.text.clone())
    })
}

#[derive(Default)]
struct Field {
    text: String,
    /// True if the field is an unescaped `*`, which matches any value.
    is_any: bool,
}

/// Splits a line at the colons. A backslash escapes the next character.
fn fields(line: &str) -> Vec<Field> {
    let mut fields = vec![Field::default()];
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        let Some(field) = fields.last_mut() else { break };
        match c {
            ':' => fields.push(Field::default()),
            '\\' => {
                field.is_any = false;
                field.text.push(chars.next().unwrap_or('\\'));
            }
            c => {
                field.is_any = c == '*' && field.text.is_empty();
                field.text.push(c);
            }
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, host: &str, database: &str) -> Option<String> {
        find(text, Login { hosts: &[host.to_owned()], port: 5432, database, user: "me" })
    }

    #[test]
    fn first_line_matching_the_login_has_its_password() {
        for (text, password) in [
            ("h:5432:d:me:secret", Some("secret")),
            ("h:5432:d:me:secret\r\n", Some("secret")),
            ("\n# h:5432:d:me:no\n#h:5432:d:me:no\nx:5432:d:me:no\n*:*:*:*:yes\nh:5432:d:me:late", Some("yes")),
            ("h:5433:d:me:no", None),
            ("h:5432:e:me:no", None),
            ("h:5432:d:you:no", None),
            ("h*:5432:d:me:no", None),
            ("\\*:5432:d:me:no", None),
            (" h:5432:d:me:no", None),
            ("h:5432:d:me", None),
            ("h:5432:d:me:", Some("")),
            ("h:*:*:me:a\\:b\\\\c d", Some("a:b\\c d")),
            ("h:*:*:me:a:b", Some("a")),
            ("h:*:*:me:*", Some("*")),
            ("h:*:*:me:end\\", Some("end\\")),
        ] {
            assert_eq!(found(text, "h", "d").as_deref(), password, "{text:?}");
        }
    }

    #[test]
    fn a_field_may_have_colons_stars_and_backslashes() {
        assert_eq!(found("\\:\\:1:*:a\\\\b:me:six", "::1", "a\\b").as_deref(), Some("six"));
        assert_eq!(found("\\*:*:*:me:star", "*", "d").as_deref(), Some("star"));
        assert_eq!(found("**:*:*:me:no", "h", "d"), None);
    }
}
