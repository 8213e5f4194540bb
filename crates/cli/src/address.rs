//! Checks connection strings, and removes secrets from them.

use crate::error::{Error, Result};

/// Describes the database that libpq's variables name, as `NAME=value` pairs without passwords.
/// Returns `None` if they name no server or database.
pub fn said_by_environment(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let said = |name: &'static str| Some((name, variable(name).filter(|value| !value.is_empty())?));
    ["PGSERVICE", "PGHOST", "PGHOSTADDR", "PGDATABASE"].into_iter().find_map(said)?;
    let shown = ["PGSERVICE", "PGHOST", "PGHOSTADDR", "PGPORT", "PGUSER", "PGDATABASE"].into_iter().filter_map(said);
    let shown = shown.map(|(name, value)| match value.contains(['=', '@', ' ']) {
        true => format!("{name}=…"), // the value may be a connection string with a password
        false => format!("{name}={value}"),
    });
    Some(shown.collect::<Vec<_>>().join(" "))
}

/// Returns the names of the variables that may contain a password.
pub fn secret_variables(variable: impl Fn(&str) -> Option<String>) -> Vec<&'static str> {
    let holds_string = |name: &&str| variable(name).is_some_and(|value| value.contains("://") || value.contains('='));
    let others =
        ["PGSERVICE", "PGHOST", "PGHOSTADDR", "PGPORT", "PGUSER", "PGDATABASE"].into_iter().filter(holds_string);
    ["DATABASE_URL", "PGPASSWORD"].into_iter().chain(others).collect()
}

/// Returns the connection string with the requested schema. The library refuses a connection string
/// that names another schema.
pub fn in_schema(url: &str, schema: Option<&str>) -> String {
    match schema.filter(|schema| !schema.is_empty()) {
        None => url.to_owned(),
        Some(schema) if url.contains("://") => {
            let place = url.rsplit('@').next().unwrap_or(url); // a password may contain a question mark
            let mark = if place.contains('?') { '&' } else { '?' };
            format!("{url}{mark}schema={}", schema.replace('%', "%25").replace('&', "%26"))
        }
        Some(schema) => format!("{url} schema='{}'", schema.replace('\\', "\\\\").replace('\'', "\\'")),
    }
}

/// Refuses a text that is not a connection string. Also refuses a connection string in which part
/// of the password would be parsed as the host. The error does not repeat the text, because it may
/// contain a secret.
pub fn check(url: &str) -> Result<()> {
    let told = match url.split_once("://") {
        Some(("postgres" | "postgresql", rest)) if is_torn(rest) => {
            let told = "an `@` in the connection string is in the way";
            return Err(
                Error::new(told).hint("the first one ends the login; write an `@` of a password or an option as %40")
            );
        }
        Some(("postgres" | "postgresql", _)) => return Ok(()),
        Some((scheme, _)) if scheme.chars().all(|c| c.is_ascii_alphanumeric()) => {
            format!("{scheme}://… is not the address of a PostgreSQL")
        }
        None if url.contains('=') => return Ok(()),
        _ => "this is not a connection string".to_owned(),
    };
    Err(Error::new(told)
        .hint("--database-url and DATABASE_URL have the form postgres://user@host/database or host=… dbname=…"))
}

/// Returns true if the first `@` does not end the login, because another `@` follows in the host or
/// the first `@` is part of an option.
fn is_torn(rest: &str) -> bool {
    rest.split_once('@').is_some_and(|(login, rest)| {
        let is_option = login.split_once('?').is_some_and(|(_, options)| options.contains('='));
        is_option || rest.split(['?', '#']).next().is_some_and(|place| place.contains('@'))
    })
}

/// Returns the user, host, database and schema of a connection string. Leaves out everything else,
/// and any text that could belong to a password in a malformed string.
pub fn without_secrets(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return words_without_secrets(url) };
    // Splits at the first `@`, which a password may not contain. But users also write an unescaped
    // `@`, so the rest is searched, too.
    let (user, rest) = match rest.split_once('@') {
        Some((login, rest)) => {
            let user = login.split(':').next().unwrap_or_default();
            let is_query = login.split_once('?').is_some_and(|(_, options)| options.contains('='));
            if user.contains(['/', '?', '#']) || is_query {
                return format!("{scheme}://…");
            }
            (format!("{user}@"), rest)
        }
        None => (String::new(), rest),
    };
    let (place, options) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
    let hosts = place.split('/').next().unwrap_or_default();
    let is_port = |host: &str| host.rsplit_once(':').is_none_or(|(_, port)| port.chars().all(|c| c.is_ascii_digit()));
    if options.contains('@') || !hosts.split(',').all(|host| host.ends_with(']') || is_port(host)) {
        return format!("{scheme}://{user}…");
    }
    let is_name =
        |name: &str| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    let named = options.split(['?', '&']).filter_map(|option| option.strip_prefix("schema=")).next_back();
    let named = named.filter(|name| is_name(name)).map_or_else(String::new, |name| format!("?schema={name}"));
    format!("{scheme}://{user}{place}{named}")
}

fn words_without_secrets(words: &str) -> String {
    let mut shown = Vec::new();
    let mut rest = words.trim_start();
    while let Some((key, after)) = rest.split_once('=') {
        let after = after.trim_start();
        let quote = if after.starts_with('\'') { Some('\'') } else { None };
        let mut escaped = false;
        let end = after.char_indices().skip(usize::from(quote.is_some())).find(|(_, c)| {
            let ends = !escaped && quote.map_or(c.is_whitespace(), |quote| *c == quote);
            escaped = *c == '\\' && !escaped;
            ends
        });
        let end = end.map_or(after.len(), |(at, c)| if quote.is_some() { at + c.len_utf8() } else { at });
        if ["service", "host", "hostaddr", "port", "dbname", "user", "schema"].contains(&key.trim()) {
            shown.push(format!("{}={}", key.trim(), &after[..end]));
        }
        rest = after[end..].trim_start();
    }
    shown.join(" ")
}

#[cfg(test)]
mod tests {
    use super::{said_by_environment, secret_variables, without_secrets};

    #[test]
    fn the_environment_names_a_database_or_none() {
        let said = |variables: &[(&str, &str)]| {
            let value = |name: &str| Some(variables.iter().find(|(known, _)| *known == name)?.1.to_owned());
            said_by_environment(value).unwrap_or_default()
        };
        assert_eq!(said(&[("PGPORT", "1"), ("PGUSER", "me"), ("PGPASSWORD", "secret"), ("PGHOST", "")]), "");
        assert_eq!(said(&[("PGUSER", "me"), ("PGPASSWORD", "secret"), ("PGHOST", "h")]), "PGHOST=h PGUSER=me");
        assert_eq!(said(&[("PGSERVICE", "prod")]), "PGSERVICE=prod");
        assert_eq!(said(&[("PGHOSTADDR", "::1"), ("PGDATABASE", "d")]), "PGHOSTADDR=::1 PGDATABASE=d");
        assert_eq!(said(&[("PGDATABASE", "postgres://u:secret@h/d")]), "PGDATABASE=…");
        assert_eq!(said(&[("PGDATABASE", "host=h password=secret")]), "PGDATABASE=…");
    }

    #[test]
    fn variable_with_a_connection_string_is_secret() {
        let secret =
            |value: &'static str| secret_variables(move |name| (name == "PGDATABASE").then(|| value.to_owned()));
        for plain in ["app", "app@azure", "@socket", "my app"] {
            assert_eq!(secret(plain), ["DATABASE_URL", "PGPASSWORD"], "{plain}");
        }
        for string in ["postgres://u:secret@h/d", "dbname=app password = secret"] {
            assert_eq!(secret(string), ["DATABASE_URL", "PGPASSWORD", "PGDATABASE"], "{string}");
        }
    }

    #[test]
    fn no_password_is_shown() {
        let cases = [
            ("postgres://me:secret@host:5433/app?sslmode=require&password=secret", "postgres://me@host:5433/app"),
            ("postgres://me:sec@ret@host/app", "postgres://me@host/app"),
            ("postgresql://host/app", "postgresql://host/app"),
            ("postgres://host/app?password=secret&schema=trial", "postgres://host/app?schema=trial"),
            ("postgres://host/app?schema=Secret%20x", "postgres://host/app"),
            ("postgres://u:pw#frag@h/d", "postgres://u@h/d"),
            ("postgres://u:pw?frag@h/d?user=x", "postgres://u@h/d"),
            ("postgres://u:p@w?frag@h/d", "postgres://u@…"),
            ("postgres://u:p@w#fr/ag@h/d", "postgres://u@…"),
            ("postgres://u:a/b@h/d", "postgres://u@h/d"),
            ("postgres://u:secret", "postgres://…"),
            ("postgres://h/d?password=sec@ret", "postgres://…"),
            ("postgres://h:5432/d?password=sec@ret", "postgres://…"),
            ("postgres://u@h/d?password=sec@ret", "postgres://u@…"),
            ("postgres://u@h:5432,[::1]:5433,[::2]/d", "postgres://u@h:5432,[::1]:5433,[::2]/d"),
            ("host=/run user=me password='a b\\' host=secret' dbname=app", "host=/run user=me dbname=app"),
            ("password = secret host = 'my host'", "host='my host'"),
            ("service=prod password=secret", "service=prod"),
            ("host=h password=secret schema='trial'", "host=h schema='trial'"),
        ];
        for (url, shown) in cases {
            assert_eq!(without_secrets(url), shown);
        }
    }
}
