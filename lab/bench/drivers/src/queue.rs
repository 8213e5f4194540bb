//! Measures the queue's own verbs for one caller, at each network delay.

use std::time::{Duration, Instant};

use trunkline::{Db, Message, Queue, Result, Settings};

use crate::{
    Failure,
    cpu::Began,
    measured::{Spread, Turn},
    place::Place,
    turns::Patience,
};

#[derive(Debug, Clone)]
pub struct Verb {
    /// The delay of the network in each direction.
    pub delay: Duration,
    pub name: &'static str,
    pub messages: usize,
    pub turns: Vec<Turn>,
}

impl Verb {
    /// Returns the time per turn, in milliseconds.
    pub fn milliseconds(&self) -> Option<Spread> {
        Spread::of(self.turns.iter().map(|turn| turn.time.as_secs_f64() * 1e3).collect())
    }
}

type Payload = Vec<u8>;

const VERBS: [(&str, usize); 8] = [
    ("enqueue one", 1),
    ("enqueue_many 1000", 1000),
    ("lease 100 (at_least_once)", 100),
    ("ack 100", 100),
    ("ack_and_lease 100", 100),
    ("take 100 (at_most_once)", 100),
    ("enqueue, ack and lease 100 each, three awaited calls", 300),
    ("the same in one transaction, sent together", 300),
];

/// Installs the schema over a connection without delay.
pub async fn migrate(place: &Place) -> Result<()> {
    Db::connect(&place.words()).await?.migrate().await.map(drop)
}

/// Runs all verbs, which take turns. Each verb has its own queue.
pub async fn verbs(place: &Place, delay: Duration, patience: Patience) -> std::result::Result<Vec<Verb>, Failure> {
    let db = Db::connect(&place.words()).await?;
    let mut verbs = VERBS.map(|(name, messages)| Verb { delay, name, messages, turns: Vec::new() });
    let mut stages = Vec::new();
    for at in 0..VERBS.len() {
        let name = format!("verb_{at}_{}", delay.as_micros());
        db.create_queue(&name, &Settings::new("bytea")).await?;
        let queue: Queue<Payload> = db.queue(&name).await?;
        stages.push(Stage { queue, held: Vec::new() });
    }
    let began = Instant::now();
    for round in 0..=patience.rounds {
        for (at, stage) in stages.iter_mut().enumerate() {
            stage.set(at).await?;
            let turn = stage.turn(at).await?;
            if round > 0 {
                verbs[at].turns.push(turn); // omits the first turn, which prepared the statements
            }
        }
        if began.elapsed() > patience.enough * 4 && round >= 3 {
            break;
        }
    }
    Ok(verbs.into())
}

/// A verb's queue, and the queue's leased messages.
struct Stage {
    queue: Queue<Payload>,
    held: Vec<Message<Payload>>,
}

fn payloads(count: usize) -> Vec<Payload> {
    (0..count).map(|k| vec![k as u8; 100]).collect()
}

impl Stage {
    /// Prepares the messages of the next turn, outside the measured time.
    async fn set(&mut self, verb: usize) -> Result<()> {
        if [3, 4, 6, 7].contains(&verb) && self.held.is_empty() {
            self.queue.enqueue_many(&payloads(100)).await?;
            self.held = self.queue.lease(100).await?;
        }
        if [2, 4, 5].contains(&verb) {
            self.queue.enqueue_many(&payloads(100)).await?;
        }
        Ok(())
    }

    async fn turn(&mut self, verb: usize) -> std::result::Result<Turn, Failure> {
        let (queue, many) = (&self.queue, payloads(1000));
        let held = std::mem::take(&mut self.held);
        let expected = [0, 0, 100, 0, 100, 100, 100, 100][verb];
        let began = Began::now()?;
        let came = match verb {
            0 => queue.enqueue(&many[0]).await.map(|_| Vec::new()),
            1 => queue.enqueue_many(&many).await.map(|_| Vec::new()),
            2 => queue.lease(100).await,
            3 => queue.ack(&held).await.map(|()| Vec::new()),
            4 => queue.ack_and_lease(&held, 100).await.map(|(came, _)| came),
            5 => queue.take(100).await,
            6 => awaited(queue, &many[..100], &held).await,
            _ => together(queue, &many[..100], &held).await,
        }?;
        let turn = began.ended()?;
        if came.len() != expected {
            return Err(format!("{}: {} messages came, not {expected}", VERBS[verb].0, came.len()).into());
        }
        match verb {
            2 => queue.ack(&came).await?,
            4 | 6 | 7 => self.held = came,
            _ => {}
        }
        Ok(turn)
    }
}

async fn awaited(
    queue: &Queue<Payload>,
    payloads: &[Payload],
    done: &[Message<Payload>],
) -> Result<Vec<Message<Payload>>> {
    queue.enqueue_many(payloads).await?;
    queue.ack(done).await?;
    queue.lease(100).await
}

async fn together(
    queue: &Queue<Payload>,
    payloads: &[Payload],
    done: &[Message<Payload>],
) -> Result<Vec<Message<Payload>>> {
    let transaction = queue.db().begin().await?;
    let sent = queue.send_enqueue_many(&transaction, payloads).await?;
    let acked = queue.send_ack(&transaction, done).await?;
    let leased = queue.send_lease(&transaction, 100).await?;
    // All of this takes one round trip. A lost lease would be reported as an error of its own, in
    // addition to the commit.
    let ((), _, (), leased) = tokio::try_join!(biased; transaction.commit(), sent, acked, leased)?;
    Ok(leased)
}
