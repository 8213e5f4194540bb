//! The one connection that listens, for every queue that somebody waits for.
//!
//! It proves itself by a notification from another connection; where none arrives (a pooler between us and the server) or the
//! connection is lost, whoever waits is told so and polls.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::{StreamExt, stream};
use tokio::{
    sync::{mpsc, watch},
    time::timeout,
};
use tokio_postgres::{AsyncMessage, Client};
use tracing::{debug, warn};

use super::{
    guest::{TlsStream, connect},
    session::Session,
};
use crate::{error::Result, sql::quote, target::Target};

/// How long the notification to itself may take.
const PROOF: Duration = Duration::from_secs(5);
/// Pause before another try, when the database cannot be reached or does not deliver.
const PAUSE: Duration = Duration::from_millis(100);
const DEAF_PAUSE: Duration = Duration::from_secs(30);
const ALIVE: &str = include_str!("../../sql/alive.sql");

/// What a waiting consumer sees of its channel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    /// Goes up by one at each notification, and whenever one may have been missed.
    pub rings: u64,
    /// Whether notifications reach us at present.
    pub hearing: bool,
    /// The advisory lock that the listening session holds while it lives.
    pub alive: Option<i64>,
}

struct Channel {
    heard: watch::Sender<Heard>,
    /// Where the texts of notifications go, if somebody wants them.
    letters: Option<mpsc::UnboundedSender<String>>,
    subscribers: usize,
}

#[derive(Default)]
struct Channels(Mutex<HashMap<String, Channel>>);

impl Channels {
    fn with<R>(&self, act: impl FnOnce(&mut HashMap<String, Channel>) -> R) -> R {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn ring(&self, channel: &str, letter: Option<&str>) {
        self.with(|all| {
            if let Some(channel) = all.get(channel) {
                if let (Some(letters), Some(letter)) = (&channel.letters, letter) {
                    let _ = letters.send(letter.to_owned()); // its reader is about to unsubscribe
                }
                channel.heard.send_modify(|heard| heard.rings += 1);
            }
        });
    }

    fn deaf(&self) {
        self.with(|all| {
            for channel in all.values() {
                channel.heard.send_modify(|heard| *heard = Heard { rings: heard.rings, ..Heard::default() });
            }
        });
    }

    /// From now on every notification arrives; one may have been missed before.
    fn hearing(&self, names: &[String], alive: i64) {
        self.with(|all| {
            for channel in names.iter().filter_map(|name| all.get(name)) {
                channel.heard.send_modify(|heard| {
                    *heard = Heard { rings: heard.rings + 1, hearing: true, alive: Some(alive) };
                });
            }
        });
    }
}

/// The listening connection of a [`Db`](crate::Db).
pub(crate) struct Listener {
    channels: Arc<Channels>,
    changed: mpsc::UnboundedSender<()>,
    start: Mutex<Option<(Target, mpsc::UnboundedReceiver<()>)>>,
    /// Marks our own notifications: they were rung here already.
    pub mark: String,
}

/// Keeps a channel listened to while it lives.
pub(crate) struct Subscription {
    pub heard: watch::Receiver<Heard>,
    name: String,
    channels: Arc<Channels>,
    changed: mpsc::UnboundedSender<()>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.channels.with(|all| {
            if let Some(channel) = all.get_mut(&self.name) {
                channel.subscribers -= 1;
                if channel.subscribers == 0 {
                    all.remove(&self.name);
                }
            }
        });
        let _ = self.changed.send(()); // the task is gone: nobody listens any more
    }
}

impl Listener {
    pub fn new(target: Target) -> Self {
        let (changed, news) = mpsc::unbounded_channel();
        let mark = uuid::Uuid::from_u64_pair(std::process::id().into(), random()).simple().to_string();
        Self { channels: Arc::default(), changed, start: Mutex::new(Some((target, news))), mark }
    }

    /// Listens to a channel; the connection is made at the first call.
    pub fn subscribe(&self, name: &str, letters: Option<mpsc::UnboundedSender<String>>) -> Subscription {
        let started = self.start.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((target, changes)) = started {
            tokio::spawn(listen(target, Arc::downgrade(&self.channels), changes, self.mark.clone()));
        }
        let heard = self.channels.with(|all| {
            let channel = all.entry(name.to_owned()).or_insert_with(|| Channel {
                heard: watch::Sender::default(),
                letters: None,
                subscribers: 0,
            });
            channel.letters = letters.or(channel.letters.take());
            channel.subscribers += 1;
            channel.heard.subscribe()
        });
        let _ = self.changed.send(()); // fails only when the runtime shuts down
        Subscription { heard, name: name.to_owned(), channels: self.channels.clone(), changed: self.changed.clone() }
    }

    /// Wakes the consumers of this process, without a detour through the server.
    pub fn ring(&self, name: &str) {
        self.channels.ring(name, None);
    }
}

fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::time::SystemTime::now())
}

/// Listens until the last handle of the listener is gone.
async fn listen(
    target: Target,
    channels: std::sync::Weak<Channels>,
    mut changes: mpsc::UnboundedReceiver<()>,
    mark: String,
) {
    let mut pause = PAUSE;
    while channels.strong_count() > 0 {
        match connect(&target).await {
            Ok((client, connection)) => {
                let proven = listen_on(&client, connection, &target, &channels, &mut changes, &mark).await;
                pause = if proven { PAUSE } else { DEAF_PAUSE };
            }
            Err(error) => debug!(%error, "the listener cannot connect; consumers poll"),
        }
        let Some(all) = channels.upgrade() else { return };
        all.deaf();
        drop(all);
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(DEAF_PAUSE);
    }
}

/// Listens on one connection until it breaks. Says whether it ever proved to hear.
async fn listen_on(
    client: &Client,
    mut connection: tokio_postgres::Connection<tokio_postgres::Socket, TlsStream>,
    target: &Target,
    channels: &std::sync::Weak<Channels>,
    changes: &mut mpsc::UnboundedReceiver<()>,
    mark: &str,
) -> bool {
    let (proof_heard, mut proof) = mpsc::unbounded_channel();
    let ears = {
        let (channels, mark) = (channels.clone(), mark.to_owned());
        tokio::spawn(async move {
            let mut messages = stream::poll_fn(move |cx| connection.poll_message(cx));
            while let Some(message) = messages.next().await {
                match message {
                    Ok(AsyncMessage::Notification(heard)) if heard.channel() == proof_channel(&mark) => {
                        let _ = proof_heard.send(());
                    }
                    Ok(AsyncMessage::Notification(heard)) if heard.payload() != mark => {
                        if let Some(channels) = channels.upgrade() {
                            channels.ring(heard.channel(), Some(heard.payload()));
                        }
                    }
                    Ok(_) => {}
                    Err(error) => {
                        debug!(%error, "the listening connection broke; consumers poll until it is back");
                        break;
                    }
                }
            }
        })
    };
    let alive = random().cast_signed();
    let proven = prove(client, target, &mut proof, mark).await && client.execute(ALIVE, &[&alive]).await.is_ok();
    if proven {
        follow(client, alive, channels, changes, ears).await;
    } else {
        warn!("no notification reaches this process (is a transaction pooler in between?); its consumers poll");
        ears.abort();
    }
    proven
}

fn proof_channel(mark: &str) -> String {
    format!("trunkline {mark}")
}

/// Sends itself a notification and waits for it. From another connection: its own would come with the answer to `notify`, also through a
/// pooler that passes on nothing else.
async fn prove(client: &Client, target: &Target, proof: &mut mpsc::UnboundedReceiver<()>, mark: &str) -> bool {
    let channel = quote(&proof_channel(mark));
    client.batch_execute(&format!("listen {channel}")).await.is_ok()
        && notify(target, &channel).await.inspect_err(|error| debug!(%error, "the listener cannot test itself")).is_ok()
        && timeout(PROOF, proof.recv()).await.is_ok_and(|heard| heard.is_some())
        && client.batch_execute(&format!("unlisten {channel}")).await.is_ok()
}

async fn notify(target: &Target, channel: &str) -> Result<()> {
    Session::open_now(target, Arc::default()).await?.batch("notify", &format!("notify {channel}")).await
}

/// Keeps the server's list of channels equal to ours, until the connection ends.
async fn follow(
    client: &Client,
    alive: i64,
    channels: &std::sync::Weak<Channels>,
    changes: &mut mpsc::UnboundedReceiver<()>,
    mut ears: tokio::task::JoinHandle<()>,
) {
    let mut listened: Vec<String> = Vec::new();
    loop {
        let Some(all) = channels.upgrade() else { break };
        let wanted: Vec<String> = all.with(|all| all.keys().cloned().collect());
        let fresh: Vec<String> = wanted.iter().filter(|name| !listened.contains(name)).cloned().collect();
        let statements: Vec<String> = fresh
            .iter()
            .map(|name| format!("listen {}", quote(name)))
            .chain(
                listened.iter().filter(|name| !wanted.contains(name)).map(|name| format!("unlisten {}", quote(name))),
            )
            .collect();
        if !statements.is_empty() && client.batch_execute(&statements.join("; ")).await.is_err() {
            break;
        }
        listened = wanted;
        all.hearing(&fresh, alive);
        // A channel that was given up and taken up again since we looked is listened to, but does not know it.
        let unaware: Vec<String> = all.with(|all| {
            let deaf = all.iter().filter(|(_, channel)| !channel.heard.borrow().hearing).map(|(name, _)| name);
            deaf.filter(|name| listened.contains(name)).cloned().collect()
        });
        all.hearing(&unaware, alive);
        drop(all);
        tokio::select! {
            change = changes.recv() => {
                if change.is_none() { break; }
                while changes.try_recv().is_ok() {}
            }
            _ = &mut ears => break,
        }
    }
    ears.abort();
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Subscription").field("channel", &self.name).finish_non_exhaustive()
    }
}
