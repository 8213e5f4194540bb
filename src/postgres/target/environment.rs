//! Environment variables that supply settings which the connection string does not contain.

use std::path::PathBuf;

use super::setting::{Origin, Setting};

/// The settings and their variables. If two variables supply the same setting, the first one is
/// used. Variables whose settings are ignored with every value, such as `PGCLIENTENCODING`, are
/// not read.
const VARIABLES: [(&str, &str); 29] = [
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
    ("requiressl", "PGREQUIRESSL"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("sslcrl", "PGSSLCRL"),
    ("sslcrldir", "PGSSLCRLDIR"),
    ("sslcert", "PGSSLCERT"),
    ("sslkey", "PGSSLKEY"),
    ("sslcertmode", "PGSSLCERTMODE"),
    ("sslnegotiation", "PGSSLNEGOTIATION"),
    ("sslsni", "PGSSLSNI"),
    ("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION"),
    ("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION"),
    ("channel_binding", "PGCHANNELBINDING"),
    ("gssencmode", "PGGSSENCMODE"),
    ("min_protocol_version", "PGMINPROTOCOLVERSION"),
    ("require_auth", "PGREQUIREAUTH"),
    ("requirepeer", "PGREQUIREPEER"),
    ("connect_timeout", "PGCONNECT_TIMEOUT"),
    ("target_session_attrs", "PGTARGETSESSIONATTRS"),
    ("load_balance_hosts", "PGLOADBALANCEHOSTS"),
];

/// A source of environment variables: either the process or a test.
#[derive(Clone, Copy)]
pub(super) struct Environment<'a>(pub &'a dyn Fn(&str) -> Option<String>);

impl Environment<'_> {
    /// Returns the value of a variable. An empty variable counts as not set.
    pub fn get(self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.is_empty())
    }

    /// Returns the settings of libpq's variables.
    pub fn settings(self) -> Vec<Setting> {
        VARIABLES.iter().filter_map(|&(name, variable)| self.setting(name, variable)).collect()
    }

    /// Returns the schema of the queues.
    pub fn schema(self) -> Option<Setting> {
        self.setting("schema", "TRUNKLINE_SCHEMA")
    }

    fn setting(self, name: &str, variable: &'static str) -> Option<Setting> {
        let value = self.get(variable)?;
        Some(Setting { name: name.to_owned(), value, origin: Origin::Variable(variable) })
    }

    /// Returns libpq's path for a file in the user's home directory.
    pub fn file_at_home(self, unix: &str, windows: &str) -> Option<PathBuf> {
        if cfg!(windows) {
            return Some(PathBuf::from(self.get("APPDATA")?).join("postgresql").join(windows));
        }
        Some(PathBuf::from(self.get("HOME")?).join(unix))
    }
}
