//! The connection, which reconnects by itself, and the server's permission errors.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_nats::{Client, ConnectOptions, Event, ServerError};
use percent_encoding::percent_decode_str;

use crate::{
    address::Address,
    error::{Error, Result},
};

/// The maximum number of stored violations.
const MOST: usize = 64;

/// The server's errors for refused publishes. An error names the subject but not the message, and
/// the message itself gets no answer.
#[derive(Debug, Clone, Default)]
pub(super) struct Violations(Arc<Mutex<VecDeque<String>>>);

impl Violations {
    fn note(&self, said: String) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() == MOST {
            all.pop_front();
        }
        all.push_back(said);
    }

    /// Removes and returns the server's error for a publish to a subject.
    pub(super) fn of(&self, subject: &str) -> Option<String> {
        let quoted = format!("\"{subject}\"");
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = all.iter().position(|said| said.contains(&quoted))?;
        all.remove(at)
    }
}

fn plain(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Connects. The connection outlasts later outages.
///
/// # Errors
/// If no server can be reached now, or none accepts the login.
pub(super) async fn connect(address: &Address) -> Result<(Client, Violations)> {
    let violations = Violations::default();
    let noted = violations.clone();
    let mut options = ConnectOptions::new()
        .name("trunkline relay")
        .connection_timeout(Duration::from_secs(5))
        .ping_interval(Duration::from_secs(5))
        .client_capacity(16_384)
        .event_callback(move |event| {
            let noted = noted.clone();
            async move {
                if let Event::ServerError(ServerError::Other(said)) = event
                    && said.to_ascii_lowercase().contains("permissions violation")
                {
                    noted.note(said);
                }
            }
        });
    // Reads the login itself, because the client ignores the user and password in a server's URL.
    let login = address.servers.split(',').find_map(|server| server.rsplit_once('@'));
    options = match login.map(|(login, _)| login.split_once(':').ok_or(login)) {
        Some(Ok((user, password))) => options.user_and_password(plain(user), plain(password)),
        Some(Err(token)) => options.token(plain(token)),
        None => options,
    };
    if let Some(file) = address.option::<String>("ca")? {
        address.authorities()?; // fails if the file cannot be read
        options = options.add_root_certificates(file.into());
    }
    let client = options.connect(address.urls()).await;
    Ok((client.map_err(|cause| Error::broker(address.shown(), cause))?, violations))
}
