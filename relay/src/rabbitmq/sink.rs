//! Publishes to an exchange: `mandatory`, persistent, each confirmed.

use std::{collections::HashMap, time::Duration};

use futures_util::future::{BoxFuture, join_all};
use lapin::{
    BasicProperties, Channel, Confirmation, PublisherConfirm,
    message::BasicReturnMessage,
    options::{BasicPublishOptions, ConfirmSelectOptions, ExchangeDeclareOptions},
    types::{AMQPValue, FieldTable, ShortString},
};
use std::sync::{Mutex, PoisonError};
use tokio::time::timeout;

use super::{
    connect::{PATIENCE, Reach, silent},
    refusal::{is_for_good, is_missing},
};
use crate::{
    address::Address,
    error::{Error, Result},
    outgoing::{KEY, Outgoing},
    sink::{Outcome, Sink},
};

/// How long the broker has to confirm a batch.
const CONFIRMS: Duration = Duration::from_secs(10);
/// Channels kept for the next batches.
const KEPT: usize = 16;
/// Properties go in one frame, which is 131,072 bytes unless the broker is set up otherwise.
const PROPERTIES: usize = 120_000;

/// RabbitMQ, `rabbitmq://user:password@host:port/ROUTING-KEY?exchange=NAME&vhost=NAME`; with `rabbitmqs` over TLS. Without `exchange` the routing key is the name of
/// a queue or stream.
///
/// A message is confirmed when every queue that it was routed to has it: a quorum queue or a stream on most of its members, a classic queue on disk (messages
/// are persistent). `message-id` is the message's id.
///
/// - Refused for good: what no queue takes (it is `mandatory`), an exchange that is gone, no permission, a message that is too large.
/// - Refused for now: everything else, a queue that is full and rejects included. For half a minute after a connection was lost and made again also what has no queue
///   or exchange: a broker that comes back finds its queues one after another.
pub struct RabbitmqSink {
    broker: String,
    exchange: ShortString,
    reach: Reach,
    idle: Mutex<Vec<Channel>>,
}

/// Why a batch, or part of it, has no confirmation.
type Sent = Result<Outcome, lapin::Error>;

impl RabbitmqSink {
    /// Connects.
    ///
    /// # Errors
    /// No server can be reached now, none lets us in, or there is no such exchange. Once connected, an outage is waited for.
    pub async fn open(address: &Address) -> Result<Self> {
        address.only(&["exchange", "vhost", "ca"])?;
        let broker = address.shown();
        let exchange = address.option::<String>("exchange")?.unwrap_or_default();
        let name = ShortString::try_new(exchange)
            .map_err(|_| Error::usage("the name of an exchange has at most 255 bytes"))?;
        let sink = Self { broker, exchange: name.clone(), reach: Reach::of(address)?, idle: Mutex::default() };
        let channel = sink.channel().await.map_err(|cause| Error::broker(&sink.broker, cause))?;
        if !name.as_str().is_empty() {
            let options = ExchangeDeclareOptions { passive: true, ..ExchangeDeclareOptions::default() };
            let asked =
                channel.exchange_declare(name, lapin::ExchangeKind::Direct, options, FieldTable::default()).await;
            asked.map_err(|cause| Error::broker(&sink.broker, cause))?;
        }
        sink.keep(channel);
        Ok(sink)
    }

    /// One that no other batch uses: what the broker says of a channel is about this batch.
    async fn channel(&self) -> Result<Channel, lapin::Error> {
        loop {
            let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match kept {
                Some(channel) if channel.status().connected() => return Ok(channel),
                Some(_) => {}
                None => break,
            }
        }
        let channel = self.reach.channel().await?;
        timeout(PATIENCE, channel.confirm_select(ConfirmSelectOptions::default())).await.map_err(|_| silent())??;
        Ok(channel)
    }

    fn keep(&self, channel: Channel) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < KEPT {
            idle.push(channel);
        }
    }

    /// Sends a batch on a channel and waits for what the broker says of each.
    async fn send(&self, batch: &[&Outgoing]) -> Vec<Sent> {
        let all = |error: &lapin::Error| batch.iter().map(|_| Err(error.clone())).collect();
        let channel = match self.channel().await {
            Ok(channel) => channel,
            Err(error) => return all(&error),
        };
        let waited = timeout(CONFIRMS, async {
            let mut confirms = Vec::with_capacity(batch.len());
            for message in batch {
                confirms.push(self.publish(&channel, message).await);
            }
            let confirmed = confirms.into_iter().map(|sent| async { sent?.await });
            join_all(confirmed).await
        });
        let Ok(confirmed) = waited.await else {
            // What it says later is nobody's. A channel that is closed frees what it holds.
            tokio::spawn(async move { timeout(PATIENCE, channel.close(200, "OK".into())).await });
            return all(&silent());
        };
        if confirmed.iter().all(std::result::Result::is_ok) {
            self.keep(channel);
        }
        told(batch, confirmed)
    }

    async fn publish(&self, channel: &Channel, message: &Outgoing) -> Result<PublisherConfirm, lapin::Error> {
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        channel
            .basic_publish(self.exchange.clone(), (*message.to).into(), options, &message.body, properties(message))
            .await
    }
}

impl Sink for RabbitmqSink {
    fn broker(&self) -> &str {
        &self.broker
    }

    fn produce<'a>(&'a self, batch: &'a [Outgoing]) -> BoxFuture<'a, Vec<Outcome>> {
        Box::pin(async move {
            let mut outcomes: Vec<Option<Outcome>> = batch.iter().map(fits).collect();
            let places: Vec<usize> = (0..batch.len()).filter(|at| outcomes[*at].is_none()).collect();
            let fitting: Vec<&Outgoing> = places.iter().map(|at| &batch[*at]).collect();
            let alone = fitting.len() == 1;
            let sent = self.send(&fitting).await;
            let settles = self.reach.settles();
            for (at, sent) in places.into_iter().zip(sent) {
                let sent = match sent {
                    // The broker has closed the channel for one of them, and says not for which.
                    Err(error) if !alone && is_final(&error, settles) => {
                        self.send(&[&batch[at]]).await.pop().unwrap_or(Err(error))
                    }
                    sent => sent,
                };
                outcomes[at] = Some(settled(sent, settles));
            }
            let unsaid = || Outcome::RefusedForNow("nothing was said of it".to_owned());
            outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(unsaid)).collect()
        })
    }
}

/// Whether no later try mends it. While a broker settles, what is missing may yet be found.
fn is_final(error: &lapin::Error, settles: bool) -> bool {
    is_for_good(error) && !(settles && is_missing(error))
}

fn settled(sent: Sent, settles: bool) -> Outcome {
    match sent {
        Ok(Outcome::RefusedForGood(no_route)) if settles => Outcome::RefusedForNow(no_route),
        Ok(outcome) => outcome,
        Err(error) if is_final(&error, settles) => Outcome::RefusedForGood(error.to_string()),
        Err(error) => Outcome::RefusedForNow(error.to_string()),
    }
}

/// What came of each message. A message that comes back stands with some confirmation of the same channel, not always with its own; so it is known by its id.
fn told(batch: &[&Outgoing], confirmed: Vec<lapin::Result<Confirmation>>) -> Vec<Sent> {
    let mut returned: HashMap<String, String> = HashMap::new();
    let mut note = |message: Option<BasicReturnMessage>| {
        if let Some(message) = message
            && let Some(id) = message.delivery.properties.message_id()
        {
            returned.insert(id.to_string(), format!("{} ({})", message.reply_text, message.reply_code));
        }
    };
    let mut sent = Vec::with_capacity(batch.len());
    for confirmation in confirmed {
        sent.push(match confirmation {
            Ok(Confirmation::Ack(message)) => {
                note(message);
                Ok(Outcome::Confirmed)
            }
            Ok(Confirmation::Nack(message)) => {
                note(message);
                Ok(Outcome::RefusedForNow("the broker did not take it (basic.nack)".to_owned()))
            }
            Ok(Confirmation::NotRequested) => Ok(Outcome::RefusedForNow("the channel does not confirm".to_owned())),
            Err(error) => Err(error),
        });
    }
    if !returned.is_empty() {
        for (message, sent) in batch.iter().zip(&mut sent) {
            if let Some(words) = returned.remove(&message.id) {
                *sent = Ok(Outcome::RefusedForGood(words));
            }
        }
    }
    sent
}

/// What AMQP has no room for would end the connection, for all.
fn fits(message: &Outgoing) -> Option<Outcome> {
    let short = |text: &str| text.len() <= 255;
    let headers: usize = message.headers().map(|(name, text)| name.len() + text.len() + 8).sum();
    let refused = |why: &str| Some(Outcome::RefusedForGood(why.to_owned()));
    if !short(&message.to) {
        return refused("a routing key has at most 255 bytes");
    }
    if !message.headers().all(|(name, _)| short(name)) {
        return refused("the name of a header has at most 255 bytes");
    }
    if headers + message.key.as_ref().map_or(0, |key| key.len()) > PROPERTIES {
        return refused("its metadata are larger than a frame of AMQP");
    }
    None
}

fn properties(message: &Outgoing) -> BasicProperties {
    let mut headers = FieldTable::default();
    let mut add = |name: &str, text: &str| {
        headers.insert(name.into(), AMQPValue::LongString(text.into()));
    };
    for (name, text) in message.headers() {
        add(name, &text);
    }
    if let Some(key) = &message.key {
        add(KEY, key);
    }
    let properties = BasicProperties::default().with_delivery_mode(2).with_headers(headers);
    let properties = match ShortString::try_new(&*message.id) {
        Ok(id) => properties.with_message_id(id),
        Err(_) => properties,
    };
    match message.content_type {
        Some(content_type) => properties.with_content_type(content_type.into()),
        None => properties,
    }
}
