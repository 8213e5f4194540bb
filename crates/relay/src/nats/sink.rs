//! Publishes to `JetStream` with `Nats-Msg-Id`: many messages in flight, each confirmed by the
//! stream.

use std::{
    str::FromStr,
    time::{Duration, Instant},
};

use async_nats::{
    Client, HeaderMap, HeaderName, HeaderValue,
    client::{PublishError, PublishErrorKind},
    connection::State,
    jetstream::{self, Context, context::GetStreamByNameErrorKind},
};
use futures_util::future::{BoxFuture, join_all};
use tokio::time::timeout;

use super::{
    acks::{Acks, Answer},
    connect::{Violations, connect},
};
use crate::{
    address::Address,
    error::{Error, Result},
    header::{self, Broker, Header, Value},
    outgoing::Outgoing,
    sink::{Outcome, Sink},
};

/// The time limit for the stream's confirmation of a message.
const PATIENCE: Duration = Duration::from_secs(5);

/// NATS `JetStream`: a message is confirmed when a stream has stored it, on the stream's configured
/// number of replicas.
///
/// `Nats-Msg-Id` is the message's id. So a message that is sent again within the stream's duplicate
/// window is stored only once. The window is two minutes unless configured otherwise.
pub struct NatsSink {
    client: Client,
    context: Context,
    acks: Acks,
    violations: Violations,
    broker: String,
}

impl NatsSink {
    /// Connects to `nats://USER:PASSWORD@HOST:PORT,…/`, or `tls://…`; the path is the route.
    /// `ca=FILE` names the certificates that verify servers.
    ///
    /// # Errors
    /// If no server can be reached now, or none accepts the login.
    pub async fn open(address: &Address) -> Result<Self> {
        address.only(&["ca"])?;
        if let Some(why) = impossible(&address.path) {
            return Err(Error::usage(format!("no message can have the subject {:?}: {why}", address.path)));
        }
        let (client, violations) = connect(address).await?;
        let acks = Acks::start(&client).await.map_err(|cause| Error::broker(address.shown(), cause))?;
        let context = jetstream::new(client.clone());
        Ok(Self { client, context, acks, violations, broker: address.shown() })
    }

    async fn outcome(&self, message: &Outgoing, answer: Option<Answer>, began: Instant) -> Outcome {
        match answer {
            Some(Answer::Stored) => Outcome::Confirmed,
            Some(Answer::NoResponders) => self.without_stream(&message.to).await,
            Some(Answer::Refused(error)) if is_for_good(&error) => Outcome::RefusedForGood(error.to_string()),
            Some(Answer::Refused(error)) => Outcome::RefusedForNow(error.to_string()),
            Some(Answer::Unreadable(why)) => Outcome::RefusedForNow(format!("the answer cannot be read: {why}")),
            None => match self.violations.of(&message.to, began) {
                Some(said) => Outcome::RefusedForGood(said),
                None => Outcome::RefusedForNow(format!("no answer within {PATIENCE:?}")),
            },
        }
    }

    /// Returns the outcome of a message whose subject has no responder. The refusal is permanent if
    /// `JetStream` itself confirms that no stream takes the subject.
    async fn without_stream(&self, subject: &str) -> Outcome {
        match self.context.stream_by_subject(subject).await {
            Err(error) if matches!(error.kind(), GetStreamByNameErrorKind::NotFound) => {
                Outcome::RefusedForGood(format!("no stream takes subject {subject:?}"))
            }
            _ => Outcome::RefusedForNow(format!("no subscriber answers on subject {subject:?} at the moment")),
        }
    }

    async fn all(&self, batch: &[Outgoing]) -> Vec<Outcome> {
        // Fails at once while disconnected. The client would buffer messages, and then block all
        // callers until it reconnects.
        if self.client.connection_state() == State::Disconnected {
            return vec![Outcome::RefusedForNow("there is no connection to a server".to_owned()); batch.len()];
        }
        let (waiting, began) = (self.acks.batch(batch.len()), Instant::now());
        let mut refused = Vec::new();
        let send = async {
            for (at, message) in batch.iter().enumerate() {
                let headers = match dressed(message) {
                    Ok(headers) => headers,
                    Err(why) => {
                        waiting.unsent();
                        refused.push((at, Outcome::RefusedForGood(why)));
                        continue;
                    }
                };
                let (to, body) = (message.to.to_string(), message.body.clone());
                let sent = self.client.publish_with_reply_and_headers(to, waiting.reply(at), headers, body);
                if let Err(error) = sent.await {
                    waiting.unsent();
                    refused.push((at, unsent(&error)));
                }
            }
        };
        // Stops sending after a time, because the client accepts no more messages during a long
        // outage. The remaining messages then get no answer.
        let _ = timeout(PATIENCE, send).await;
        let answers = waiting.answers(PATIENCE).await;
        // Each subject without a subscriber requires a request to the server, so these requests run
        // concurrently.
        let outcomes = batch.iter().zip(answers).map(|(message, answer)| self.outcome(message, answer, began));
        let mut outcomes = join_all(outcomes).await;
        for (at, outcome) in refused {
            outcomes[at] = outcome;
        }
        outcomes
    }
}

impl Sink for NatsSink {
    fn broker(&self) -> &str {
        &self.broker
    }

    fn separator(&self) -> Option<char> {
        Some('.')
    }

    fn produce<'a>(&'a self, batch: &'a [Outgoing]) -> BoxFuture<'a, Vec<Outcome>> {
        Box::pin(self.all(batch))
    }
}

/// Returns a message's headers, or the reason for a refusal.
fn dressed(message: &Outgoing) -> std::result::Result<HeaderMap, String> {
    (Broker::NATS.destination)(&message.to)?;
    let mut headers = HeaderMap::new();
    for Header { name, value } in header::headers(&Broker::NATS, message)? {
        let name = String::from_utf8_lossy(&name);
        let wrong = || format!("NATS cannot have the header {name:?}");
        let Value::Text(text) = value else { return Err(wrong()) };
        let parsed = HeaderName::from_str(&name).map_err(|_| wrong())?;
        headers.append(parsed, HeaderValue::from_str(&text).map_err(|_| wrong())?);
    }
    let id = HeaderValue::from_str(&message.id).map_err(|_| format!("NATS cannot have the id {:?}", message.id))?;
    headers.insert(async_nats::header::NATS_MESSAGE_ID, id);
    Ok(headers)
}

/// Returns true if the message itself caused the error, and not a lack of space or the state of the
/// stream.
fn is_for_good(error: &jetstream::Error) -> bool {
    use jetstream::ErrorCode;
    let of_stream = [
        ErrorCode::ACCOUNT_RESOURCES_EXCEEDED,
        ErrorCode::INSUFFICIENT_RESOURCES,
        ErrorCode::STREAM_STORE_FAILED,
        ErrorCode::STREAM_SEALED,
    ];
    error.code() == 400 && !of_stream.contains(&error.error_code())
}

/// Returns the reason why the subjects of a route, whose fields are not filled yet, are invalid.
fn impossible(route: &str) -> Option<&'static str> {
    route.split('.').any(str::is_empty).then_some("a part between its dots is empty")
}

/// Returns the outcome of a message that the client did not send.
fn unsent(error: &PublishError) -> Outcome {
    match error.kind() {
        PublishErrorKind::MaxPayloadExceeded | PublishErrorKind::InvalidSubject => {
            Outcome::RefusedForGood(error.to_string())
        }
        PublishErrorKind::Send => Outcome::RefusedForNow(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_subjects_are_found_before_a_message_needs_them() {
        assert!(["a..b", ".a", "a.", "{payload.x}..b"].iter().all(|route| impossible(route).is_some()));
        assert!(
            ["a", "a.b", "a.{metadata.x}", "a-{queue}.{+payload.x.y}"].iter().all(|route| impossible(route).is_none())
        );
    }

    #[test]
    fn lack_of_space_is_no_fault_of_the_message() {
        let of = |code: u16, err_code: u64| -> jetstream::Error {
            let error = serde_json::json!({"code": code, "err_code": err_code, "description": "of the server"});
            serde_json::from_value(error).expect("an error of the server")
        };
        // Tests the errors of a full account, a full stream (two codes), a sealed stream, and a
        // message that is too large.
        for (code, err_code, is_permanent) in
            [(400, 10002, false), (503, 10077, false), (400, 10077, false), (400, 10109, false), (400, 10054, true)]
        {
            assert_eq!(is_for_good(&of(code, err_code)), is_permanent, "{err_code}");
        }
    }
}
