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
    header::{self, Broker, Value},
    outgoing::{CONTENT_TYPE, Outgoing},
    sink::{Outcome, Sink},
};

/// How long the broker has to confirm a batch.
const CONFIRMS: Duration = Duration::from_secs(10);
/// Channels kept for the next batches.
const KEPT: usize = 16;
/// Properties go in one frame, which is 131,072 bytes unless the broker is set up otherwise.
const PROPERTIES: usize = 120_000;

/// RabbitMQ, `rabbitmq://user:password@host:port/ROUTING-KEY?exchange=NAME&vhost=NAME`; with
/// `rabbitmqs` over TLS. Without `exchange` the routing key is the name of a queue or stream.
///
/// A message is confirmed when every queue that it was routed to has it: a quorum queue or a stream
/// on most of its members, a classic queue on disk (messages are persistent). `message-id` is the
/// message's id.
///
/// - Refused for good: what no queue takes (it is `mandatory`), an exchange that is gone, no
///   permission, a message that is too large.
/// - Refused for now: everything else, a queue that is full and rejects included. For half a minute
///   after a connection was lost and made again also what has no queue or exchange: a broker that
///   comes back finds its queues one after another.
pub struct RabbitmqSink {
    broker: String,
    exchange: ShortString,
    reach: Reach,
    idle: Mutex<Vec<Channel>>,
}

/// A message with its properties.
type Dressed<'a> = (&'a Outgoing, BasicProperties);
/// Why a batch, or part of it, has no confirmation.
type Sent = Result<Outcome, lapin::Error>;

impl RabbitmqSink {
    /// Connects.
    ///
    /// # Errors
    /// No server can be reached now, none lets us in, or there is no such exchange. Once connected,
    /// an outage is waited for.
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
    async fn send(&self, batch: &[Dressed<'_>]) -> Vec<Sent> {
        let all = |error: &lapin::Error| batch.iter().map(|_| Err(error.clone())).collect();
        let channel = match self.channel().await {
            Ok(channel) => channel,
            Err(error) => return all(&error),
        };
        let waited = timeout(CONFIRMS, async {
            let mut confirms = Vec::with_capacity(batch.len());
            for (message, properties) in batch {
                confirms.push(self.publish(&channel, message, properties.clone()).await);
            }
            let confirmed = confirms.into_iter().map(|sent| async { sent?.await });
            join_all(confirmed).await
        });
        let Ok(confirmed) = waited.await else {
            // Its later answers have no reader. A channel that is closed frees what it holds.
            tokio::spawn(async move { timeout(PATIENCE, channel.close(200, "OK".into())).await });
            return all(&silent());
        };
        if confirmed.iter().all(std::result::Result::is_ok) {
            self.keep(channel);
        }
        told(batch, confirmed)
    }

    async fn publish(
        &self,
        channel: &Channel,
        message: &Outgoing,
        properties: BasicProperties,
    ) -> Result<PublisherConfirm, lapin::Error> {
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        channel.basic_publish(self.exchange.clone(), (*message.to).into(), options, &message.body, properties).await
    }
}

impl Sink for RabbitmqSink {
    fn broker(&self) -> &str {
        &self.broker
    }

    /// Of routing keys, to a topic exchange; a queue's name has none.
    fn separator(&self) -> Option<char> {
        (!self.exchange.as_str().is_empty()).then_some('.')
    }

    fn produce<'a>(&'a self, batch: &'a [Outgoing]) -> BoxFuture<'a, Vec<Outcome>> {
        Box::pin(async move {
            let mut outcomes = vec![None; batch.len()];
            let (mut places, mut fitting) = (Vec::with_capacity(batch.len()), Vec::with_capacity(batch.len()));
            for (at, message) in batch.iter().enumerate() {
                match properties(message) {
                    Ok(properties) => {
                        places.push(at);
                        fitting.push((message, properties));
                    }
                    Err(why) => outcomes[at] = Some(Outcome::RefusedForGood(why)),
                }
            }
            let alone = fitting.len() == 1;
            let sent = self.send(&fitting).await;
            let settles = self.reach.settles();
            for ((at, sent), one) in places.into_iter().zip(sent).zip(&fitting) {
                let sent = match sent {
                    // The broker has closed the channel for one of them, and says not for which.
                    Err(error) if !alone && is_final(&error, settles) => {
                        self.send(std::slice::from_ref(one)).await.pop().unwrap_or(Err(error))
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

/// What came of each message. A message that comes back stands with some confirmation of the same
/// channel, not always with its own; so it is known by its id.
fn told(batch: &[Dressed<'_>], confirmed: Vec<lapin::Result<Confirmation>>) -> Vec<Sent> {
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
        for ((message, _), sent) in batch.iter().zip(&mut sent) {
            if let Some(words) = returned.remove(&message.id) {
                *sent = Ok(Outcome::RefusedForGood(words));
            }
        }
    }
    sent
}

/// The properties of a message that has a place to go to. What AMQP has no room for would end the
/// connection, for all.
fn properties(message: &Outgoing) -> Result<BasicProperties, String> {
    (Broker::RABBITMQ.destination)(&message.to)?;
    let headers = header::headers(&Broker::RABBITMQ, message)?;
    // Of each name, the length, the type and the length of its value.
    let bytes: usize = headers.iter().map(|header| header.name.len() + length(&header.value) + 8).sum();
    if bytes > PROPERTIES {
        return Err("its metadata are larger than a frame of AMQP".to_owned());
    }
    let short = |text: &str| ShortString::try_new(text).ok();
    let content_type = message.content_type.or_else(|| message.metadata.get(CONTENT_TYPE)).and_then(short);
    let mut table = FieldTable::default();
    for header in headers {
        let name = header.name().and_then(short).ok_or("the name of a header has at most 255 bytes, of text")?;
        table.insert(name, value(&header.value)?);
    }
    let properties = BasicProperties::default().with_delivery_mode(2).with_headers(table);
    let properties = match short(&message.id) {
        Some(id) => properties.with_message_id(id),
        None => properties,
    };
    Ok(match content_type {
        Some(content_type) => properties.with_content_type(content_type),
        None => properties,
    })
}

fn length(value: &Value<'_>) -> usize {
    match value {
        Value::Amqp(json) => json.len(),
        other => other.bytes().map_or(0, <[u8]>::len),
    }
}

fn value(value: &Value<'_>) -> Result<AMQPValue, String> {
    Ok(match value {
        Value::Text(text) => AMQPValue::LongString(text.as_bytes().into()),
        Value::Bytes(bytes) => AMQPValue::LongString((&**bytes).into()),
        Value::Null => AMQPValue::Void,
        Value::Amqp(json) => {
            serde_json::from_str(json).map_err(|cause| format!("a header is no value of AMQP's: {cause}"))?
        }
    })
}
