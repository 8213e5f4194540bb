//! The server that libpq's environment variables name.

/// The variables that name a server; one of them is enough.
const NAMES: [&str; 3] = ["PGHOST", "PGHOSTADDR", "PGPORT"];
/// The variables with details of a named server. The programs create their own databases on that
/// server, and connect to `PGDATABASE` to do so.
const DETAILS: [&str; 3] = ["PGUSER", "PGPASSWORD", "PGDATABASE"];
/// libpq's other connection variables. The programs cannot obey them.
const REFUSED: [&str; 18] = [
    "PGSERVICE",
    "PGSERVICEFILE",
    "PGPASSFILE",
    "PGOPTIONS",
    "PGSSLMODE",
    "PGREQUIRESSL",
    "PGSSLNEGOTIATION",
    "PGSSLCERT",
    "PGSSLKEY",
    "PGSSLROOTCERT",
    "PGSSLCRL",
    "PGREQUIREAUTH",
    "PGREQUIREPEER",
    "PGCHANNELBINDING",
    "PGGSSENCMODE",
    "PGKRBSRVNAME",
    "PGTARGETSESSIONATTRS",
    "PGLOADBALANCEHOSTS",
];

/// Returns the connection string of the server that libpq's variables name, or `None` if they name
/// no server.
///
/// # Errors
/// If a variable cannot be obeyed. The message names it and suggests what to do.
pub fn named_by_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Option<String>, String> {
    let get = |name: &str| variable(name).filter(|value| !value.is_empty());
    let refused = REFUSED.iter().find(|name| get(name).is_some_and(|value| !is_harmless(name, &value)));
    if let Some(name) = refused {
        return Err(format!(
            "{name} is set, which this program cannot obey; unset it, and name the server with PGHOST and PGPORT or with --database-url"
        ));
    }
    if NAMES.iter().all(|name| get(name).is_none()) {
        return match DETAILS.iter().find(|name| get(name).is_some()) {
            Some(name) => Err(format!(
                "{name} is set, but neither PGHOST nor PGPORT names a server; set one of them, or unset {name} for a private server"
            )),
            None => Ok(None),
        };
    }
    let host = get("PGHOSTADDR").or_else(|| get("PGHOST")).unwrap_or_else(|| "localhost".to_owned());
    let parts = [
        ("host", Some(host)),
        ("port", get("PGPORT")),
        ("user", get("PGUSER")),
        ("password", get("PGPASSWORD")),
        ("dbname", get("PGDATABASE")),
    ];
    let quoted = |(name, value): (&str, Option<String>)| {
        value.map(|value| format!("{name}='{}'", value.replace('\\', r"\\").replace('\'', r"\'")))
    };
    Ok(Some(parts.into_iter().filter_map(quoted).collect::<Vec<_>>().join(" ")))
}

/// Returns true if a connection without TLS can obey the variable.
fn is_harmless(name: &str, value: &str) -> bool {
    name == "PGSSLMODE" && ["disable", "allow", "prefer"].contains(&value)
        || ["PGGSSENCMODE", "PGCHANNELBINDING"].contains(&name) && ["disable", "prefer"].contains(&value)
}

#[cfg(test)]
mod tests {
    use super::named_by_environment;

    fn named(set: &[(&str, &str)]) -> Result<Option<String>, String> {
        named_by_environment(|name| set.iter().find(|(is, _)| *is == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn host_or_port_names_a_server() {
        assert_eq!(named(&[]), Ok(None));
        assert_eq!(named(&[("PGHOST", "")]), Ok(None));
        assert_eq!(named(&[("PGPORT", "15432")]), Ok(Some("host='localhost' port='15432'".to_owned())));
        let all = [
            ("PGHOST", "/run"),
            ("PGUSER", "me"),
            ("PGPASSWORD", r"a' \b"),
            ("PGDATABASE", "d"),
            ("PGSSLMODE", "prefer"),
        ];
        assert_eq!(named(&all), Ok(Some(r"host='/run' user='me' password='a\' \\b' dbname='d'".to_owned())));
    }

    #[test]
    fn variables_that_cannot_be_obeyed_are_refused_by_name() {
        for (set, name) in [
            (&[("PGHOST", "x"), ("PGSSLMODE", "require")][..], "PGSSLMODE is set"),
            (&[("PGSERVICE", "mine")], "PGSERVICE is set"),
            (&[("PGUSER", "me")], "neither PGHOST nor PGPORT"),
        ] {
            assert!(named(set).is_err_and(|why| why.contains(name)), "{set:?}");
        }
    }
}
