//! Service files, which contain named groups of settings that several programs share.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use super::{
    connection_string::{ConnectionString, is_space},
    environment::Environment,
    setting::{Origin, Setting},
};
use crate::error::{Error, Result};

const KNOWN: [&str; 34] = [
    "answer_timeout",
    "application_name",
    "channel_binding",
    "connect_timeout",
    "dbname",
    "host",
    "hostaddr",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "load_balance_hosts",
    "max_answer",
    "options",
    "passfile",
    "password",
    "port",
    "prepared_statements",
    "schema",
    "ssl_max_protocol_version",
    "ssl_min_protocol_version",
    "sslcert",
    "sslcertmode",
    "sslcrl",
    "sslcrldir",
    "sslkey",
    "sslmode",
    "sslnegotiation",
    "sslpassword",
    "sslrootcert",
    "sslsni",
    "target_session_attrs",
    "tcp_user_timeout",
    "user",
];

/// Returns the settings of the service that the connection string or the environment names, if any.
pub(super) fn settings(options: &mut ConnectionString, environment: Environment<'_>) -> Result<Vec<Setting>> {
    let own_file = options.take("servicefile")?.map(|setting| setting.value).filter(|file| !file.is_empty());
    let named = options.take("service")?.map(|setting| setting.value).or_else(|| environment.get("PGSERVICE"));
    match named.filter(|name| !name.is_empty()) {
        Some(name) => find(&name, own_file.or_else(|| environment.get("PGSERVICEFILE")), environment),
        None => Ok(Vec::new()),
    }
}

/// Finds a service in the user's file, and then in the system-wide file. Returns an error if a file
/// was named explicitly and does not exist.
fn find(name: &str, named: Option<String>, environment: Environment<'_>) -> Result<Vec<Setting>> {
    let must = named.is_some();
    let of_user = named.map(PathBuf::from).or_else(|| environment.file_at_home(".pg_service.conf", ".pg_service.conf"));
    let of_machine = environment.get("PGSYSCONFDIR").map(|folder| PathBuf::from(folder).join("pg_service.conf"));
    let mut seen = Vec::new();
    for (file, must) in of_user.map(|file| (file, must)).into_iter().chain(of_machine.map(|file| (file, false))) {
        match std::fs::read_to_string(&file) {
            Ok(text) => {
                if let Some(found) = section(&text, name, &file)? {
                    return Ok(found);
                }
                seen.push(format!("{} has no [{name}]", file.display()));
            }
            Err(error) if error.kind() == ErrorKind::NotFound && !must => {
                seen.push(format!("there is no {}", file.display()));
            }
            Err(error) => {
                return Err(Error::invalid(format!("the service file {} cannot be read: {error}", file.display())));
            }
        }
    }
    let seen = if seen.is_empty() { "no service file is named".to_owned() } else { seen.join(", ") };
    Err(Error::invalid(format!(
        "the service {name:?} is not defined: {seen}; write it into ~/.pg_service.conf, or name another file in PGSERVICEFILE"
    )))
}

/// Returns the settings in the first section with this name. If a setting is repeated, the first
/// value is used. All other sections are ignored.
fn section(text: &str, name: &str, file: &Path) -> Result<Option<Vec<Setting>>> {
    let mut found: Option<Vec<Setting>> = None;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim_matches(is_space);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(section) = line.strip_prefix('[') {
            match found {
                Some(_) => return Ok(found),
                None => found = section.split(']').next().filter(|section| *section == name).map(|_| Vec::new()),
            }
            continue;
        }
        let Some(settings) = &mut found else { continue };
        let origin = Origin::Service { file: file.to_owned(), line: at + 1 };
        let setting = setting(line, origin)?;
        if settings.iter().all(|said| said.name != setting.name) {
            settings.push(setting);
        }
    }
    Ok(found)
}

/// Parses a line.
fn setting(line: &str, origin: Origin) -> Result<Setting> {
    // The error does not quote the line, because the line may contain a password.
    let no_setting =
        |origin: &Origin| Error::invalid(format!("{origin} is neither [a service], name=value nor # a comment"));
    let Some((name, value)) = line.split_once('=') else { return Err(no_setting(&origin)) };
    let setting = Setting { name: name.to_owned(), value: value.to_owned(), origin }.translated()?;
    let Setting { name, origin, .. } = &setting;
    match name.as_str() {
        "service" | "servicefile" => {
            Err(Error::invalid(format!("{origin}: a service cannot refer to another service")))
        }
        name if KNOWN.contains(&name) || setting.is_of_others() => Ok(setting),
        _ if line.starts_with("ldap") => Err(Error::invalid(format!(
            "{origin}: services cannot be looked up by LDAP; write the settings into the file"
        ))),
        url if url.contains(':') => Err(no_setting(origin)),
        other => Err(Error::invalid(format!("{origin}: {other:?} is not a supported setting"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str, name: &str) -> String {
        match section(text, name, Path::new("/etc/s.conf")) {
            Ok(None) => "nothing".to_owned(),
            Ok(Some(settings)) => {
                let all = settings.iter().map(|setting| format!("{}={}", setting.name, setting.value));
                all.collect::<Vec<_>>().join(" ")
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_service_is_the_first_section_of_its_name() {
        let text =
            "# all of ours\nlost\n[a]\nhost=h\n  port=1  \nport=2\r\n\n[b]\nbad\n[a]\nuser=u\n[ab]\npassword=a=b c#d\n";
        for (name, settings) in
            [("a", "host=h port=1"), ("ab", "password=a=b c#d"), ("c", "nothing"), ("A", "nothing"), ("", "nothing")]
        {
            assert_eq!(said(text, name), settings, "{name}");
        }
        assert_eq!(said(text, "b"), "line 9 of /etc/s.conf is neither [a service], name=value nor # a comment");
    }

    #[test]
    fn a_line_that_is_not_understood_is_named() {
        for (line, wanted) in [
            // It counts as given, so that `PGGSSENCMODE` does not apply.
            ("gssencmode=disable", "gssencmode="),
            (
                "gssencmode=require",
                "line 2 of /etc/s.conf: gssencmode=require is not supported: sslmode=require encrypts with TLS",
            ),
            ("keepalives_count=3", "keepalives_retries=3"),
            ("options=-c search_path=a", "options=-c search_path=a"),
            ("postgres://u:secret@h/d?x=y", "line 2 of /etc/s.conf is neither [a service], name=value nor # a comment"),
            ("password=a\u{a0}", "password=a\u{a0}"),
            ("secret", "line 2 of /etc/s.conf is neither [a service], name=value nor # a comment"),
            ("service=b", "line 2 of /etc/s.conf: a service cannot refer to another service"),
            (
                "ldap://x/y?z=1",
                "line 2 of /etc/s.conf: services cannot be looked up by LDAP; write the settings into the file",
            ),
            ("sslnonsense=/x", "line 2 of /etc/s.conf: \"sslnonsense\" is not a supported setting"),
            ("host =h", "line 2 of /etc/s.conf: \"host \" is not a supported setting"),
        ] {
            assert_eq!(said(&format!("[a]\n{line}"), "a"), wanted, "{line}");
        }
    }
}
