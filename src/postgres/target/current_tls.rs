//! The TLS configuration of a target, which follows its files.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use rustls::ClientConfig;
use tracing::warn;

use super::{
    handshake::Handshake,
    tls::{Check, client_config},
    tls_files::TlsFiles,
};
use crate::error::Result;

/// The TLS configuration of a target. Certificates and revocation lists are renewed while a program
/// runs, so each new connection takes the files as they are then.
pub(crate) struct CurrentTls {
    check: Check,
    is_preferred: bool,
    handshake: Handshake,
    files: TlsFiles,
    last: Mutex<Last>,
}

/// The times at which the files were changed.
type Changed = Vec<Option<SystemTime>>;

struct Last {
    config: Arc<ClientConfig>,
    changed: Changed,
    /// The times of the files that could not be used last.
    refused: Option<Changed>,
}

impl CurrentTls {
    pub(super) fn of(check: Check, is_preferred: bool, handshake: Handshake, files: TlsFiles) -> Result<Self> {
        let changed = files.changed();
        let config = Arc::new(client_config(check, is_preferred, &handshake, &files)?);
        Ok(Self { check, is_preferred, handshake, files, last: Mutex::new(Last { config, changed, refused: None }) })
    }

    /// Returns the configuration of the current files. Files that cannot be used, for example a
    /// certificate whose key is not written yet, are logged once, and change nothing.
    pub fn config(&self) -> Arc<ClientConfig> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = self.files.changed();
        if changed != last.changed {
            match client_config(self.check, self.is_preferred, &self.handshake, &self.files) {
                Ok(config) => *last = Last { config: Arc::new(config), changed, refused: None },
                Err(error) if last.refused.as_ref() != Some(&changed) => {
                    warn!(%error, "changed files for TLS cannot be used; the earlier contents are");
                    last.refused = Some(changed);
                }
                Err(_) => {}
            }
        }
        last.config.clone()
    }
}
