//! Environment variables that supply settings which the connection string does not contain.

use std::path::PathBuf;

use super::setting::{Origin, Setting};

const VARIABLES: [(&str, &str); 22] = [
    ("host", "PGHOST"),
    ("hostaddr", "PGHOSTADDR"),
    ("port", "PGPORT"),
    ("user", "PGUSER"),
    ("password", "PGPASSWORD"),
    ("passfile", "PGPASSFILE"),
    ("dbname", "PGDATABASE"),
    ("options", "PGOPTIONS"),
    ("application_name", "PGAPPNAME"),
    ("sslmode", "PGSSLMODE"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("sslcrl", "PGSSLCRL"),
    ("sslcrldir", "PGSSLCRLDIR"),
    ("sslcert", "PGSSLCERT"),
    ("sslkey", "PGSSLKEY"),
    ("sslcertmode", "PGSSLCERTMODE"),
    ("sslnegotiation", "PGSSLNEGOTIATION"),
    ("channel_binding", "PGCHANNELBINDING"),
    ("connect_timeout", "PGCONNECT_TIMEOUT"),
    ("target_session_attrs", "PGTARGETSESSIONATTRS"),
    ("load_balance_hosts", "PGLOADBALANCEHOSTS"),
    ("schema", "TRUNKLINE_SCHEMA"),
];

/// A source of environment variables: either the process or a test.
#[derive(Clone, Copy)]
pub(super) struct Environment<'a>(pub &'a dyn Fn(&str) -> Option<String>);

impl Environment<'_> {
    /// Returns the value of a variable. An empty variable counts as not set.
    pub fn get(self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.is_empty())
    }

    pub fn settings(self) -> Vec<Setting> {
        let setting = |&(name, variable): &(&str, &'static str)| {
            let value = self.get(variable)?;
            Some(Setting { name: name.to_owned(), value, origin: Origin::Variable(variable) })
        };
        VARIABLES.iter().filter_map(setting).collect()
    }

    /// Returns libpq's path for a file in the user's home directory.
    pub fn file_at_home(self, unix: &str, windows: &str) -> Option<PathBuf> {
        if cfg!(windows) {
            return Some(PathBuf::from(self.get("APPDATA")?).join("postgresql").join(windows));
        }
        Some(PathBuf::from(self.get("HOME")?).join(unix))
    }
}
