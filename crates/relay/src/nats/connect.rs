//! The connection, which reconnects by itself, and the server's permission errors.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use async_nats::{Client, ConnectOptions, Event, ServerError};
use percent_encoding::percent_decode_str;

use crate::{
    address::Address,
    error::{Error, Result},
};

/// The maximum number of subjects whose violations are stored.
const MOST: usize = 64;
/// The start of the server's error for a refused publish. The subject follows in quotation marks.
const REFUSED: &str = "permissions violation for publish to ";

/// The server's errors for refused publishes. An error names the subject but not the message, and
/// the message itself gets no answer.
#[derive(Debug, Clone, Default)]
pub(super) struct Violations(Arc<Mutex<VecDeque<Violation>>>);

#[derive(Debug)]
struct Violation {
    said: String,
    at: Instant,
}

impl Violations {
    fn note(&self, said: String) {
        let is_refused = said.get(..REFUSED.len()).is_some_and(|start| start.eq_ignore_ascii_case(REFUSED));
        if !is_refused {
            return; // for example, an error about a subscription
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|older| older.said != said);
        if all.len() == MOST {
            all.pop_front();
        }
        all.push_back(Violation { said, at: Instant::now() });
    }

    /// Returns the server's error for a publish to a subject, if the error arrived after `since`.
    /// An older error does not concern a message that was sent then: the right may have been
    /// granted, and the message may have no answer because the server hangs.
    pub(super) fn of(&self, subject: &str, since: Instant) -> Option<String> {
        let quoted = quoted(subject);
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = |one: &&Violation| one.at >= since && one.said.get(REFUSED.len()..) == Some(&*quoted);
        all.iter().find(is_new).map(|one| one.said.clone())
    }
}

/// Quotes a subject as the server does.
fn quoted(subject: &str) -> String {
    format!("\"{}\"", subject.replace('\\', "\\\\").replace('"', "\\\""))
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
                if let Event::ServerError(ServerError::Other(said)) = event {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(said: &str) -> Violations {
        let violations = Violations::default();
        violations.note(said.to_owned());
        violations
    }

    #[test]
    fn refused_publish_concerns_messages_that_were_sent_before() {
        let began = Instant::now();
        let said = r#"Permissions Violation for Publish to "s.no""#;
        let violations = noted(said);
        assert_eq!(violations.of("s.no", began).as_deref(), Some(said));
        assert_eq!(violations.of("s.no", began).as_deref(), Some(said), "another message of the batch");
        assert_eq!(violations.of("s.yes", began), None);
        while violations.0.lock().expect("not poisoned")[0].at >= Instant::now() {} // clocks have ticks
        assert_eq!(violations.of("s.no", Instant::now()), None, "a later message was not refused");
        violations.note(said.to_owned());
        assert!(violations.of("s.no", began).is_some());
    }

    #[test]
    fn only_refused_publishes_count() {
        let began = Instant::now();
        for said in [
            r#"Permissions Violation for Subscription to "s.no""#,
            r#"Permissions Violation for Publish with Reply of "s.no""#,
            r#"Permissions Violation for Publish to "x.s.no""#,
            r#"Permissions Violation for Publish to "x" of "s.no""#,
        ] {
            assert_eq!(noted(said).of("s.no", began), None, "{said}");
        }
    }

    #[test]
    fn subject_is_quoted_as_by_the_server() {
        let began = Instant::now();
        let violations = noted(r#"Permissions Violation for Publish to "s.\"a\\b""#);
        assert!(violations.of(r#"s."a\b"#, began).is_some());
    }

    #[test]
    fn refusals_of_one_subject_displace_no_others() {
        let began = Instant::now();
        let violations = noted(r#"Permissions Violation for Publish to "s.other""#);
        (0..MOST * 2).for_each(|_| violations.note(r#"Permissions Violation for Publish to "s.no""#.to_owned()));
        assert!(violations.of("s.other", began).is_some() && violations.of("s.no", began).is_some());
    }
}
