//! Publishes persistent, `mandatory` messages to an exchange, which the broker confirms one by one.

use std::{collections::HashMap, time::Duration};

use futures_util::{StreamExt, future::BoxFuture, stream};
use lapin::{
    BasicProperties, Channel, Confirmation, PublisherConfirm,
    message::BasicReturnMessage,
    options::{BasicPublishOptions, ConfirmSelectOptions, ExchangeDeclareOptions},
    types::{AMQPValue, FieldTable, ShortString},
};
use std::sync::{Mutex, PoisonError};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout},
};

use super::{
    confirms::InFlight,
    connect::{PATIENCE, Reach, silent},
    refusal::{is_for_good, is_forbidden, is_missing},
    search::{CHANNELS, Probe, Verdict, search},
};
use crate::{
    address::Address,
    error::{Error, Result},
    header::{self, Broker, Value},
    outgoing::{CONTENT_TYPE, Outgoing},
    sink::{ENOUGH, MARGIN, Outcome, Sink},
};

/// The time before the end of a search at which its parts stop waiting for confirmations, so that
/// the confirmations that have arrived count.
const BEFORE: Duration = Duration::from_secs(2);
/// The maximum number of idle channels.
const KEPT: usize = 16;
/// The maximum number of bytes of a message's properties. They are sent in one frame, which has
/// 131,072 bytes unless the broker is configured otherwise.
const PROPERTIES: usize = 120_000;

/// RabbitMQ, `rabbitmq://user:password@host:port/ROUTING-KEY?exchange=NAME&vhost=NAME`; the scheme
/// `rabbitmqs` uses TLS. Without `exchange` the routing key is the name of a queue or stream.
///
/// A message is confirmed when every queue that it was routed to has stored it: a quorum queue or a
/// stream on most of its members, a classic queue on disk (messages are persistent). `message-id`
/// is the message's id.
///
/// - Refused for good: a message that no queue accepts (it is `mandatory`), a missing exchange, a
///   missing permission, a message that is too large.
/// - Refused for now: all other errors, including a full queue that rejects messages. For half a
///   minute after a reconnect this includes a missing queue or exchange, because a restarted broker
///   loads its queues one after another.
pub struct RabbitmqSink {
    broker: String,
    exchange: ShortString,
    reach: Reach,
    idle: Mutex<Vec<Channel>>,
    /// Limits the channels that searches use, because a broker limits the channels of a connection.
    searches: Semaphore,
    in_flight: InFlight,
}

type Dressed<'a> = (&'a Outgoing, BasicProperties);
/// The outcome of a message, or the error of its channel.
type Sent = Result<Outcome, lapin::Error>;

impl RabbitmqSink {
    /// Connects.
    ///
    /// # Errors
    /// If no server can be reached now, none accepts the login, or the exchange does not exist.
    /// Once connected, the sink outlasts an outage.
    pub async fn open(address: &Address) -> Result<Self> {
        address.only(&["exchange", "vhost", "ca"])?;
        let broker = address.shown();
        let exchange = address.option::<String>("exchange")?.unwrap_or_default();
        let name = ShortString::try_new(exchange)
            .map_err(|_| Error::usage("the name of an exchange has at most 255 bytes"))?;
        let (reach, searches) = (Reach::of(address)?, Semaphore::new(CHANNELS));
        let (idle, in_flight) = (Mutex::default(), InFlight::default());
        let sink = Self { broker, exchange: name.clone(), reach, idle, searches, in_flight };
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

    /// Returns a channel that no other batch uses, so the channel's errors belong to this batch.
    async fn channel(&self) -> Result<Channel, lapin::Error> {
        loop {
            let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match kept {
                Some(channel) if channel.status().connected() => return Ok(channel),
                Some(_) => {}
                None => break,
            }
        }
        let channel = self.reach.channel(&self.in_flight).await?;
        let asked = channel.confirm_select(ConfirmSelectOptions::default());
        self.in_flight.answered(PATIENCE, asked).await.ok_or_else(silent)??;
        Ok(channel)
    }

    fn keep(&self, channel: Channel) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < KEPT {
            idle.push(channel);
        }
    }

    /// Sends a batch on a channel and waits for the outcome of each message: see
    /// [`InFlight::collect`].
    async fn send(&self, batch: &[&Dressed<'_>], end: Option<Instant>) -> Vec<Sent> {
        let channel = match self.channel().await {
            Ok(channel) => channel,
            Err(error) => return batch.iter().map(|_| Err(error.clone())).collect(),
        };
        let sent = stream::iter(batch.iter().copied().enumerate())
            .then(async |(at, (message, properties))| (at, self.publish(&channel, message, properties.clone()).await));
        let largest = batch.iter().map(|(message, _)| message.body.len()).max().unwrap_or(0);
        let answers = self.in_flight.collect((&channel, batch.len(), largest), sent, end).await;
        let confirmed: Vec<_> = answers.into_iter().map(|answer| answer.unwrap_or_else(|| Err(silent()))).collect();
        if confirmed.iter().all(std::result::Result::is_ok) {
            self.keep(channel);
        } else {
            // Closes the channel, which frees its memory. Later answers are not read.
            tokio::spawn(async move { timeout(PATIENCE, channel.close(200, "OK".into())).await });
        }
        told(batch, confirmed)
    }

    /// Sends a part of a batch, and judges the answers.
    async fn send_part(&self, batch: &[Dressed<'_>], part: Probe) -> Vec<(usize, Verdict)> {
        let again = part.is_again();
        let Probe { places, end } = part;
        let _room = if again { self.searches.acquire().await.ok() } else { None };
        let part: Vec<_> = places.iter().map(|at| &batch[*at]).collect();
        let sent = self.send(&part, end.map(|end| end - BEFORE)).await;
        let settles = self.reach.settles();
        let verdict = |sent: Sent| match sent {
            Err(error) if !is_for_good(&error) => Verdict::Lost(error.to_string()),
            Err(error) if is_final(&error, settles) && !concerns_all(&error, &part, again) => Verdict::Suspect,
            sent => Verdict::Known(settled(sent, settles)),
        };
        places.into_iter().zip(sent.into_iter().map(verdict)).collect()
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

    /// Returns the separator of a topic exchange's routing keys. A queue's name has none.
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
            let to: Vec<&str> = fitting.iter().map(|(message, _)| &*message.to).collect();
            let found = search(&to, ENOUGH, |part| self.send_part(&fitting, part)).await;
            for (at, outcome) in places.into_iter().zip(found) {
                outcomes[at] = outcome;
            }
            let unsaid = || Outcome::RefusedForNow("the broker did not report an outcome".to_owned());
            outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(unsaid)).collect()
        })
    }

    /// Returns the time that all batches may take one after another. Batches share a connection, so
    /// one may wait for all others, and may then be searched.
    fn longest(&self, batches: usize) -> Duration {
        let batches = u32::try_from(batches).unwrap_or(u32::MAX);
        ENOUGH.saturating_mul(batches).saturating_add(ENOUGH + MARGIN)
    }
}

/// Returns true if the broker would refuse each message of the part. A missing exchange or right
/// affects all messages with the same destination. Messages that were sent only once are sent
/// again, because the exchange may have been replaced in the meantime.
fn concerns_all(error: &lapin::Error, part: &[&Dressed<'_>], again: bool) -> bool {
    let have_one_destination = || part.iter().all(|(message, _)| message.to == part[0].0.to);
    part.len() == 1 || again && (is_missing(error) || is_forbidden(error) && have_one_destination())
}

/// Returns true if a retry cannot succeed. While a broker is still loading, missing queues may
/// still appear.
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

/// Returns the outcome of each message. A returned message may arrive with the confirmation of
/// another message of the channel, so it is identified by its id.
fn told(batch: &[&Dressed<'_>], confirmed: Vec<lapin::Result<Confirmation>>) -> Vec<Sent> {
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
            // Looks up the outcome without removing it, because a batch may contain the same
            // message twice, if its lease expired.
            if let Some(words) = returned.get(&message.id) {
                *sent = Ok(Outcome::RefusedForGood(words.clone()));
            }
        }
    }
    sent
}

/// Returns a message's properties, or the reason for a refusal. Properties that exceed AMQP's
/// limits would end the connection for all messages.
fn properties(message: &Outgoing) -> Result<BasicProperties, String> {
    (Broker::RABBITMQ.destination)(&message.to)?;
    let headers = header::headers(&Broker::RABBITMQ, message)?;
    // Counts for each header a length, a type, and the length of its value.
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
            serde_json::from_str(json).map_err(|cause| format!("a header is not an AMQP value: {cause}"))?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapin::message::Delivery;

    #[test]
    fn batch_may_wait_for_all_others_and_be_searched() {
        let reach = Reach::of(&"rabbitmq://localhost/orders".parse().expect("an address")).expect("a server");
        let (idle, searches, in_flight) = (Mutex::default(), Semaphore::new(CHANNELS), InFlight::default());
        let sink = RabbitmqSink { broker: String::new(), exchange: "".into(), reach, idle, searches, in_flight };
        assert_eq!(sink.longest(8), 9 * ENOUGH + MARGIN);
    }

    #[test]
    fn unroutable_message_that_a_batch_contains_twice_is_refused_twice() {
        let message = Outgoing::new("q/1/7", "nowhere", "x");
        let returned = || {
            let mut delivery = Delivery::mock(0, "".into(), "nowhere".into(), false, Vec::new());
            delivery.properties = properties(&message).expect("they fit");
            BasicReturnMessage { delivery, reply_code: 312, reply_text: "NO_ROUTE".into() }
        };
        let other = Outgoing::new("q/1/8", "orders", "x");
        let batch: Vec<_> = [&message, &other, &message].map(|one| (one, BasicProperties::default())).into();
        let confirmed = [Some(returned()), None, Some(returned())].map(|back| Ok(Confirmation::Ack(back)));
        let outcomes: Vec<_> = told(&batch.iter().collect::<Vec<_>>(), confirmed.into())
            .into_iter()
            .map(|sent| sent.expect("an answer"))
            .collect();
        let refused = Outcome::RefusedForGood("NO_ROUTE (312)".to_owned());
        assert_eq!(outcomes, [refused.clone(), Outcome::Confirmed, refused]);
    }
}
