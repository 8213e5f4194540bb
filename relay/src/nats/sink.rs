//! Publishes to `JetStream`: many in flight, each confirmed by the stream, with `Nats-Msg-Id`.

use std::{str::FromStr, time::Duration};

use async_nats::{
    HeaderMap, HeaderName, HeaderValue,
    connection::State,
    jetstream::{
        self, Context,
        context::{ContextBuilder, PublishAckFuture, PublishError, PublishErrorKind},
        message::PublishMessage,
    },
};
use futures_util::future::{BoxFuture, join_all};

use super::connect::{Violations, connect};
use crate::{
    address::Address,
    error::Result,
    outgoing::{KEY, Outgoing},
    sink::{Outcome, Sink},
};

/// How long the stream has to confirm.
const PATIENCE: Duration = Duration::from_secs(5);
/// Publishes without an answer at most, of all batches.
const IN_FLIGHT: usize = 16_384;

/// NATS `JetStream`: a message is confirmed when a stream has stored it, on as many replicas as the stream has asked for.
///
/// `Nats-Msg-Id` is the message's id, so within the stream's window for duplicates (two minutes unless set otherwise) a message that is sent again is stored once.
pub struct NatsSink {
    context: Context,
    violations: Violations,
    broker: String,
}

impl NatsSink {
    /// Connects to `nats://USER:PASSWORD@HOST:PORT,…/`, or `tls://…`; the path is for the route. `ca=FILE` names the certificates that servers are known by.
    ///
    /// # Errors
    /// No server can be reached now, or none lets us in.
    pub async fn open(address: &Address) -> Result<Self> {
        address.only(&["ca"])?;
        let (client, violations) = connect(address).await?;
        let context = ContextBuilder::new().timeout(PATIENCE).max_ack_inflight(IN_FLIGHT).build(client);
        Ok(Self { context, violations, broker: address.shown() })
    }

    async fn publish(&self, message: &Outgoing) -> Result<PublishAckFuture, PublishError> {
        let publish = PublishMessage::build().payload(message.body.clone()).headers(headers(message));
        self.context.send_publish(message.to.to_string(), publish).await
    }

    async fn confirmed(&self, message: &Outgoing, sent: Result<PublishAckFuture, PublishError>) -> Outcome {
        let outcome = match sent {
            Ok(answer) => answer.await.map(drop),
            Err(error) => Err(error),
        };
        match outcome {
            Ok(()) => Outcome::Confirmed,
            Err(error) => self.refused(message, &error).await,
        }
    }

    async fn refused(&self, message: &Outgoing, error: &PublishError) -> Outcome {
        match error.kind() {
            PublishErrorKind::StreamNotFound => self.without_stream(&message.to).await,
            PublishErrorKind::MaxPayloadExceeded => Outcome::RefusedForGood(words(error)),
            PublishErrorKind::TimedOut => match self.violations.of(&message.to) {
                Some(said) => Outcome::RefusedForGood(said),
                None => Outcome::RefusedForNow(words(error)),
            },
            PublishErrorKind::Other if is_for_good(error) => Outcome::RefusedForGood(words(error)),
            _ => Outcome::RefusedForNow(words(error)),
        }
    }

    /// Nobody answered on the subject. Where `JetStream` itself answers that no stream takes it, none will.
    async fn without_stream(&self, subject: &str) -> Outcome {
        use jetstream::context::GetStreamByNameErrorKind as Kind;
        match self.context.stream_by_subject(subject).await {
            Err(error) if matches!(error.kind(), Kind::NotFound) => {
                Outcome::RefusedForGood(format!("no stream takes subject {subject:?}"))
            }
            _ => Outcome::RefusedForNow(format!("nobody answers on subject {subject:?} at the moment")),
        }
    }
}

impl Sink for NatsSink {
    fn broker(&self) -> &str {
        &self.broker
    }

    fn produce<'a>(&'a self, batch: &'a [Outgoing]) -> BoxFuture<'a, Vec<Outcome>> {
        Box::pin(async move {
            // What the client takes while it has no connection fills its memory, and then holds up everybody until it has one.
            if self.context.client().connection_state() == State::Disconnected {
                return vec![Outcome::RefusedForNow("there is no connection to a server".to_owned()); batch.len()];
            }
            let mut sent = Vec::with_capacity(batch.len());
            for message in batch {
                sent.push(self.publish(message).await);
            }
            join_all(batch.iter().zip(sent).map(|(message, sent)| self.confirmed(message, sent))).await
        })
    }
}

fn headers(message: &Outgoing) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut add = |name: &str, text: &str| {
        if let (Ok(name), Ok(text)) =
            (HeaderName::from_str(&plain(name, true)), HeaderValue::from_str(&plain(text, false)))
        {
            headers.insert(name, text);
        }
    };
    add("Nats-Msg-Id", &message.id);
    for (name, text) in message.headers() {
        add(name, &text);
    }
    if let Some(key) = &message.key {
        add(KEY, key);
    }
    headers
}

/// As a header can have it: what cannot stand there is written as in an address, `%0A`.
fn plain(text: &str, is_name: bool) -> std::borrow::Cow<'_, str> {
    use percent_encoding::{AsciiSet, CONTROLS, percent_encode, utf8_percent_encode};
    const NAME: &AsciiSet = &CONTROLS.add(b' ').add(b':').add(b'%');
    const TEXT: &AsciiSet = &CONTROLS.add(b'%');
    let bad = |byte: u8| byte.is_ascii_control() || is_name && !(byte.is_ascii_graphic() && byte != b':');
    if !text.bytes().any(bad) {
        return text.into();
    }
    if is_name { percent_encode(text.as_bytes(), NAME).into() } else { utf8_percent_encode(text, TEXT).into() }
}

/// Errors that `JetStream` gives for what a message is, not for what it has no room for.
fn is_for_good(error: &PublishError) -> bool {
    use std::error::Error;
    let said = error.source().and_then(|source| source.downcast_ref::<jetstream::Error>());
    said.is_some_and(|said| said.code() == 400 && said.error_code() != jetstream::ErrorCode::STREAM_STORE_FAILED)
}

/// The broker's words, with what is behind them.
fn words(error: &PublishError) -> String {
    error.to_string()
}
